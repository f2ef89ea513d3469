"""Tool calls of an ACP agent: what is said about them piece by piece becomes items, command output and file changes."""

from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.acp.frames import Block, Content, Diff, Meta, Resource, ResourceLink, Text, ToolCall, ToolContent
from ostler.agents.acp.profile import Profile
from ostler.wire.items import Item
from ostler.wire.running import Draft

_MOST_COMPARED = 2**23
"""How much of what a command printed is remembered, so as not to tell it twice."""
_FINAL = frozenset({"completed", "failed", "cancelled"})
_NO_INPUT = frozenset({b"", b"{}", b"null"})


class Call:
    """Everything known about one tool call."""

    def __init__(self, item_id: str, name: str | None) -> None:
        self.item_id = item_id
        self.call_id = ""
        self.name = name
        self.title = ""
        self.kind = "other"
        self.status = "pending"
        self.input = b""
        self.content: tuple[ToolContent, ...] = ()
        self.paths: tuple[str, ...] = ()
        self.output: Any = None
        self.printed = ""
        self.parent_id: str | None = None
        self.started = False

    def merge(self, frame: ToolCall) -> None:
        """Take in what a frame says; absent fields did not change."""
        self.call_id = frame.tool_call_id
        self.name = frame.name or _native_name(frame.meta) or self.name
        self.title = frame.title or self.title
        self.kind = frame.kind or self.kind
        self.status = frame.status or self.status
        if (raw_input := bytes(frame.raw_input)) not in _NO_INPUT:
            self.input = raw_input
        if frame.content is not None:
            self.content = frame.content
        if frame.locations:
            self.paths = tuple(location.path for location in frame.locations)
        if frame.raw_output is not None:
            self.output = frame.raw_output

    @property
    def tool(self) -> str:
        """The tool's name, or the next best thing."""
        return self.name or (self.title if self.kind == "other" else self.kind) or "tool"

    @property
    def arguments(self) -> str:
        """Its arguments as JSON; for agents that do not tell them, what else is known."""
        if self.input:
            return self.input.decode()
        known: dict[str, Any] = {"command" if self.kind == "execute" else "title": self.title}
        if self.paths:
            known["path"] = self.paths[0]
        return msgspec.json.encode(known).decode()

    @property
    def diffs(self) -> tuple[Diff, ...]:
        """The changes it makes or made."""
        return tuple(one for one in self.content if isinstance(one, Diff))

    @property
    def text(self) -> str:
        """What it says in words."""
        return "\n".join(shown(one.content) for one in self.content if isinstance(one, Content))


class ToolCalls:
    """All tool calls of one process; agents may mention a call for the first time in any frame."""

    def __init__(self, start: int, profile: Profile) -> None:
        self._start = start
        self._profile = profile
        self._open: dict[str, Call] = {}
        self._uses: dict[str, int] = {}

    def last(self) -> Call | None:
        """The call that was opened last, if it is still open."""
        return next(reversed(self._open.values()), None)

    def item_of(self, call_id: str | None) -> str | None:
        """The item of a call, open or not."""
        return None if call_id is None or call_id not in self._uses else self._item_id(call_id)

    def take(self, frame: ToolCall, *, begins: bool = False, asks: bool = False) -> list[Draft]:
        """What one frame about a call leads to; an agent may use the id of a finished call again."""
        call = self._open.get(frame.tool_call_id)
        if call is None:
            if frame.tool_call_id in self._uses and not begins:
                return []  # words after the end
            call = self._opened(frame)
        call.merge(frame)
        if self._profile.arguments_in_content and not call.input:
            call.input = _object(call.text)
        call.parent_id = self.item_of(parent_of(frame.meta)) or call.parent_id
        drafts = self._begun(call) if asks or self._is_known(call) else []
        drafts += _printed(call, frame, grows=not begins and not self._profile.arguments_in_content)
        if call.status in _FINAL:
            del self._open[frame.tool_call_id]
            drafts += _finished(call)
        return drafts

    def of(self, frame: ToolCall) -> Call:
        """The open call that a frame is about."""
        return self._open[frame.tool_call_id]

    def forget(self) -> None:
        """The turn is over."""
        self._open.clear()

    def _opened(self, frame: ToolCall) -> Call:
        call_id = frame.tool_call_id
        self._uses[call_id] = self._uses.get(call_id, 0) + 1
        call = self._open[call_id] = Call(self._item_id(call_id), self._first_name(frame))
        return call

    def _first_name(self, frame: ToolCall) -> str | None:
        """The tool's name, for agents that do not tell it in its own field."""
        if self._profile.titles_are_names:
            return frame.title
        separator = self._profile.id_separator
        return frame.tool_call_id.partition(separator)[0] if separator and separator in frame.tool_call_id else None

    def _is_known(self, call: Call) -> bool:
        """Whether enough was said about a call to show it."""
        if call.input or call.status in _FINAL:
            return True
        return call.status != "pending" and not self._profile.arguments_in_content

    def _item_id(self, call_id: str) -> str:
        again = self._uses[call_id] - 1
        return f"itm_{self._start}_{call_id}" + (f"_{again}" if again else "")

    def _begun(self, call: Call) -> list[Draft]:
        if call.started:
            return []
        call.started = True
        return [say.opened(_item(call))]


def shown(block: Block) -> str:
    """Content as text."""
    match block:
        case Text():
            return block.text
        case ResourceLink():
            return f"[{block.name or block.uri}]({block.uri})"
        case Resource():
            return str(block.resource.get("text") or f"[{block.resource.get('uri', 'resource')}]")
        case _:
            return f"[{block.mime_type}]"


def parent_of(meta: Meta | None) -> str | None:
    """The call of the sub-agent that this belongs to, where the agent's own extension tells."""
    if not meta:
        return None
    inner = meta.get("claudeCode")
    parent = meta.get("parentToolCallId") or (inner.get("parentToolUseId") if isinstance(inner, dict) else None)
    return parent if isinstance(parent, str) else None


def diff_text(diff: Diff) -> str:
    """One file's change as a unified diff."""
    target = "/dev/null" if _action(diff) == "deleted" else diff.path
    return say.diff_of(diff.path, diff.old_text or "", diff.new_text or "", target)


def _object(text: str) -> bytes:
    """The text, if it is a whole JSON object."""
    try:
        return text.encode() if isinstance(msgspec.json.decode(text), dict) else b""
    except msgspec.DecodeError:
        return b""


def _native_name(meta: Meta | None) -> str | None:
    """The tool's name in an extension: each agent has another place for it."""
    fields = meta or {}
    inner = fields.get("claudeCode")
    name = (
        fields.get("toolName")
        or fields.get("tool_name")
        or (inner.get("toolName") if isinstance(inner, dict) else None)
    )
    return name if isinstance(name, str) else None


def _printed(call: Call, frame: ToolCall, *, grows: bool) -> list[Draft]:
    """What a command printed since the last frame: reported as such, or seen as growth of the call's content."""
    piece = _terminal_output(frame.meta)
    grows = grows and call.kind == "execute" and len(call.printed) <= _MOST_COMPARED
    if not piece and grows and frame.status == "in_progress" and frame.content:
        piece = call.text.removeprefix(call.printed) if call.text.startswith(call.printed) else ""
    if not piece:
        return []
    if len(call.printed) <= _MOST_COMPARED:
        call.printed += piece
    return [say.printed(piece, call.item_id)]


def _terminal_output(meta: Meta | None) -> str:
    for name in ("terminal_output_delta", "terminal_output"):
        output = (meta or {}).get(name)
        if isinstance(output, dict) and isinstance(output.get("data"), str):
            return str(output["data"])
    return ""


def _finished(call: Call) -> list[Draft]:
    went_well = call.status == "completed"
    changes = _changes(call) if went_well else []
    return [*changes, *say.answered(_item(call), _output(call), failed=not went_well)]


def _item(call: Call) -> Item:
    return say.call(call.item_id, call.tool, call.arguments, call.call_id, call.parent_id)


def _output(call: Call) -> str:
    if isinstance(call.output, dict) and call.output.keys() == {"output"}:
        call.output = call.output["output"]
    if isinstance(call.output, str) and call.output:
        return call.output
    if call.text or call.printed:
        return call.text or call.printed
    if call.diffs:
        return "\n".join(f"Changed {diff.path}" for diff in call.diffs)
    return "" if call.output is None or call.output == "" else msgspec.json.encode(call.output).decode()


def _changes(call: Call) -> list[Draft]:
    if call.diffs:
        return [draft for diff in call.diffs for draft in _change(diff, call.item_id)]
    if call.kind == "edit":
        return [draft for path in call.paths for draft in _change(_guessed(call, path), call.item_id)]
    if call.kind == "delete":
        return [draft for path in call.paths for draft in say.changed(path, "deleted", None, call.item_id)]
    return []


def _guessed(call: Call, path: str) -> Diff:
    """The change of an agent that shows none, by what its edits usually name."""
    given = msgspec.json.decode(call.arguments)
    texts = [given.get(name) for name in ("old_string", "old_str", "new_string", "new_str", "content", "file_text")]
    old, new = texts[0] or texts[1], texts[2] or texts[3] or texts[4] or texts[5]
    return Diff(path=path, old_text=old if isinstance(old, str) else None, new_text=new if isinstance(new, str) else "")


def _change(diff: Diff, item_id: str) -> list[Draft]:
    return say.changed(diff.path, _action(diff), diff_text(diff), item_id)


def _action(diff: Diff) -> say.Action:
    """What happened to the file: as the agent tells, or as the texts look."""
    kind = (diff.meta or {}).get("kind")
    if kind == "delete" or (diff.new_text is None and diff.old_text is not None):
        return "deleted"
    return "created" if not diff.old_text else "modified"
