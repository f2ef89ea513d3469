"""Pi's tool calls: items, output while it grows, and what they did to files."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Unreadable
from ostler.agents.pi import frames
from ostler.wire.items import Item
from ostler.wire.parts import TextPart
from ostler.wire.running import Draft

ANCHOR = 200
_ENDING = re.compile(r"(\n\n)?(Command (exited with code|aborted|timed out)[^\n]*|\(no output\))\s*\Z")
_LONGEST_ENDING = 500
_details = msgspec.json.Decoder(frames.WriteDetails)


class _Call:
    """A tool call that is not answered yet."""

    def __init__(self, item: Item, name: str, arguments: dict[str, Any]) -> None:
        self.item = item
        self.name = name
        self.arguments = arguments
        self.seen = ""
        """The output reported so far."""
        self.ran = False
        """Whether it said anything before its end; a call that was rejected did not."""


class Tools:
    """The tool calls that run now."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._open: dict[str, _Call] = {}

    def item_of(self, native: str) -> str:
        """The item of a tool call."""
        return f"itm_{self._start}_{native}"

    def begin(self, frame: frames.ToolStart) -> Sequence[Output]:
        """A tool is called."""
        item = say.call(self.item_of(frame.tool_call_id), frame.tool_name, frame.args, frame.tool_call_id)
        arguments = msgspec.json.decode(frame.args)
        known = arguments if isinstance(arguments, dict) else {}
        self._open[frame.tool_call_id] = _Call(item, frame.tool_name, known)
        return (say.opened(item),)

    def grow(self, frame: frames.ToolUpdate) -> Sequence[Output]:
        """A tool has answered more: Pi sends all of it again, we tell only what is new."""
        call = self._call(frame.tool_call_id)
        call.ran = True
        fresh = _unseen(call, _text(frame.partial_result))
        if not fresh:
            return ()
        if call.name == "bash":
            return (_printed(call, fresh),)
        result = say.result(call.item)
        return say.opened(result), say.grown(result.item_id, TextPart(text=fresh), frame.tool_call_id)

    def end(self, frame: frames.ToolEnd) -> Sequence[Output]:
        """A tool has answered."""
        call = self._call(frame.tool_call_id)
        del self._open[frame.tool_call_id]
        output = _text(frame.result)
        changes = () if frame.is_error else _changes(call, frame.result)
        return *_rest(call, output), *changes, *say.answered(call.item, output, failed=frame.is_error)

    def _call(self, native: str) -> _Call:
        if native not in self._open:
            raise Unreadable(f"No tool call {native} is open", "$.toolCallId")
        return self._open[native]


def _text(result: frames.ToolResult) -> str:
    return "\n".join(block.text if block.type == "text" else f"[{block.type}]" for block in result.content)


# Output of commands


def _printed(call: _Call, data: str) -> Draft:
    return say.printed(data, call.item.item_id)


def _rest(call: _Call, output: str) -> Sequence[Output]:
    """What a command printed after its last update; Pi's own words at the end are none of it."""
    if call.name != "bash" or not call.ran:
        return ()
    # only the end is searched: a line of these words over and over would take for ever
    fresh = _unseen(call, output[:-_LONGEST_ENDING] + _ENDING.sub("", output[-_LONGEST_ENDING:]))
    return (_printed(call, fresh),) if fresh.strip() else ()


def _unseen(call: _Call, output: str) -> str:
    """The new end of an output that Pi repeats from its beginning, or from somewhere in it once it is long."""
    seen, call.seen = call.seen, output
    if output.startswith(seen):
        return output[len(seen) :]
    if seen.startswith(output):
        call.seen = seen
        return ""
    anchor = seen[-ANCHOR:]
    found = output.rfind(anchor)
    return output if found < 0 else output[found + len(anchor) :]


# Files


def _changes(call: _Call, result: frames.ToolResult) -> Sequence[Output]:
    path = call.arguments.get("path")
    if call.name not in {"write", "edit"} or not isinstance(path, str):
        return ()
    details = _details.decode(result.details) if bytes(result.details) != b"null" else frames.WriteDetails()
    action: say.Action = "modified" if call.name == "edit" or details.existed else "created"
    diff = _diff(call, path, details)
    return say.changed(path, action, diff, call.item.item_id, "edit" if call.name == "edit" else "write")


def _diff(call: _Call, path: str, details: frames.WriteDetails) -> str | None:
    if details.patch is not None:
        return details.patch
    if call.name == "write":
        content = call.arguments.get("content")
        known = details.before is not None and isinstance(content, str)
        return _unified(path, [(details.before or "", content or "")]) if known else None
    return proposed_diff(call.name, call.arguments)


def proposed_diff(tool: str, arguments: dict[str, Any]) -> str | None:
    """What an edit would change, as far as its arguments tell; the line numbers count from its own beginning."""
    path, edits = arguments.get("path"), arguments.get("edits")
    if tool != "edit" or not isinstance(path, str):
        return None
    given = edits if isinstance(edits, list) else [arguments]
    pairs = [(edit.get("oldText"), edit.get("newText")) for edit in given if isinstance(edit, dict)]
    texts = [(old, new) for old, new in pairs if isinstance(old, str) and isinstance(new, str)]
    return _unified(path, texts) if texts else None


def _unified(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    lines: list[str] = []
    for old, new in pairs:
        fresh = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
        lines += list(fresh)[2 if lines else 0 :]
    return "\n".join(lines) + "\n" if lines else ""
