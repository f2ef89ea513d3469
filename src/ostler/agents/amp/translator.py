"""The dialogue with Amp through its bridge (programs/bridges/amp.py), as a pure state machine.

Amp sends whole messages.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send, TurnDone, Unreadable
from ostler.agents.amp import frames
from ostler.agents.asks import permission_asked
from ostler.agents.instructions import has_own_home, instructed
from ostler.wire.events import UsageUpdatedData
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, StatusPart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt

IGNORED_BLOCKS = {"redacted_thinking": "encrypted thoughts", "image": "a picture that a tool looked at"}
_FINAL = frozenset({"end_turn", "max_tokens", "refusal", "stop_sequence"})


class AmpTranslator:
    """One bridge, and the processes of Amp behind it."""

    def __init__(self, spec: AgentSpec, ready: Ready) -> None:
        self._spec = spec
        self._ready = ready
        self._calls: dict[str, Item] = {}
        self._asks: dict[str, int] = {}
        self._count = 0
        self._status: Item | None = None
        self._has_failed = False
        self._usage = UsageUpdatedData()
        self._needs_instructions = spec.resume is None and not has_own_home(spec)
        """Whether Amp has yet to hear the session's instructions in a prompt."""

    # What we say

    def open(self) -> Sequence[Output]:
        """The bridge takes prompts at once."""
        return (self._ready,)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn. Amp says nothing until a message is whole, so a status stands for its silence."""
        if self._needs_instructions:
            prompt, self._needs_instructions = instructed(prompt, self._spec), False
        self._usage = UsageUpdatedData()
        self._has_failed = False
        self._status = Item(
            item_id=self._fresh(),
            kind="status",
            role="assistant",
            status="in_progress",
            content=(StatusPart(label="Working"),),
        )
        return _user_frame(prompt), say.opened(self._status)

    def steer(self, prompt: Prompt) -> None:
        """Amp does not tell to which turn such words belong, so they wait for the next one."""

    def interrupt(self) -> Sequence[Output]:
        """Have the bridge end Amp; the thread goes on with the next prompt."""
        return (Send(msgspec.json.encode({"type": "interrupt"})),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._asks.pop(answer.ask_id, None)
        if ask is None or not isinstance(answer, PermissionAnswer):
            return ()
        frame = {"type": "answer", "ask": ask, "allow": answer.allow, "message": answer.message}
        return (Send(msgspec.json.encode(frame)),)

    # What it says

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one frame."""
        try:
            head = _head.decode(frame)
            name = f"{head.type}/{head.subtype}" if head.type in {"system", "bridge"} else head.type
            if name not in HANDLERS:
                raise Unreadable(f"Unknown frame '{name}'", "$.type")
            decoder, handler = HANDLERS[name]
            return handler(self, decoder.decode(frame))
        except msgspec.DecodeError as error:
            raise say.unreadable(error) from error

    def on_init(self, frame: frames.Init) -> Sequence[Output]:
        """Amp has started: now the thread has an id."""
        known = msgspec.structs.replace(
            self._ready, native_session_id=frame.session_id, mode=frame.agent_mode or self._ready.mode
        )
        news = () if known == self._ready else (known,)
        self._ready = known
        return news

    def on_assistant(self, frame: frames.Spoken) -> Sequence[Output]:
        """A whole message: words become one item, calls one each; it may be the turn's last."""
        parent = self._parent(frame)
        words = [part for block in frame.message.content if (part := _words(block)) is not None]
        calls = [block for block in frame.message.content if block.type == "tool_use"]
        messages = [say.closed(say.message(self._fresh(), None, parent, words), "completed")] if words else []
        begun = [say.opened(self._call(block, parent)) for block in calls]
        outputs = [*messages, *begun, *self._count_tokens(frame)]
        if parent is None and frame.message.stop_reason in _FINAL:
            outputs += self._end("completed", frame.message.stop_reason)
        return outputs

    def on_user(self, frame: frames.Spoken) -> Sequence[Output]:
        """Results of tools; the user's own words come back, too, and are known."""
        outputs: list[Output] = []
        for block in frame.message.content:
            if block.type == "tool_result" and (made := self._calls.pop(block.tool_use_id, None)):
                outputs += [*_file_changes(made, block), *say.answered(made, block.content, failed=block.is_error)]
        return outputs

    def on_result(self, frame: frames.Result) -> Sequence[Output]:
        """Amp is about to end; without an error it was us who had no more words."""
        if not frame.is_error or "User cancelled" in (frame.error or ""):
            return ()
        self._has_failed = True
        message = frame.error or "Amp stopped."
        return (say.failure(message, _code(message)),)

    def on_ended(self, frame: frames.Ended) -> Sequence[Output]:
        """The process is gone; if a turn was under way, this is its end, and another process takes the next prompt."""
        if frame.interrupted:
            return self._end("interrupted", "interrupted")
        if self._status is None:
            return ()
        if self._has_failed:
            return self._end("failed", "error")
        message = f"Amp ended with code {frame.code}."
        return (say.failure(message, "agent_error"), *self._end("failed", "agent_exited"))

    def on_ask(self, frame: frames.Ask) -> Sequence[Output]:
        """May this tool run, once?"""
        ask_id = f"per_{self._spec.start}_{frame.ask}"
        self._asks[ask_id] = frame.ask
        known = _arguments(frame.input)
        subject = known.cmd or known.path
        metadata: dict[str, Any] = {"input": msgspec.json.decode(frame.input)}
        if known.cmd:
            metadata["always"] = f"{frame.tool}({known.cmd})"
        if known.old_str:
            metadata["diff"] = say.diff_of(known.path, known.old_str, known.new_str)
        action = f"{frame.tool}: {subject}" if subject else frame.tool
        data = permission_asked(ask_id, action, frame.tool, self._name(frame.tool_use_id), metadata)
        return (Draft("permission.requested", data),)

    def _end(self, outcome: Any, reason: str | None) -> list[Output]:
        closed = [] if self._status is None else [say.closed(self._status, "completed")]
        self._status = None
        self._asks.clear()
        return [*closed, TurnDone(outcome=outcome, stop_reason=reason)]

    def _count_tokens(self, frame: frames.Spoken) -> list[Output]:
        used = frame.message.usage
        if used is None or frame.parent_tool_use_id is not None:
            return []
        self._usage = UsageUpdatedData(
            input_tokens=(self._usage.input_tokens or 0) + used.input,
            output_tokens=(self._usage.output_tokens or 0) + used.output_tokens,
            cached_input_tokens=(self._usage.cached_input_tokens or 0) + used.cache_read_input_tokens,
            context_used=used.input + used.output_tokens,
            context_window=used.max_tokens,
        )
        return [Draft("usage.updated", self._usage)]

    # Items

    def _name(self, native: str) -> str:
        return f"itm_{self._spec.start}_{native}"

    def _parent(self, frame: frames.Spoken) -> str | None:
        return None if frame.parent_tool_use_id is None else self._name(frame.parent_tool_use_id)

    def _fresh(self) -> str:
        self._count += 1
        return self._name(str(self._count))

    def _call(self, block: frames.Block, parent: str | None) -> Item:
        made = self._calls[block.id] = say.call(self._name(block.id), block.name, block.input, block.id, parent)
        return made


_head = msgspec.json.Decoder(frames.Head)
_Handler = tuple[msgspec.json.Decoder[Any], Callable[[AmpTranslator, Any], Sequence[Output]]]
HANDLERS: dict[str, _Handler] = {
    "system/init": (msgspec.json.Decoder(frames.Init), AmpTranslator.on_init),
    "assistant": (msgspec.json.Decoder(frames.Spoken), AmpTranslator.on_assistant),
    "user": (msgspec.json.Decoder(frames.Spoken), AmpTranslator.on_user),
    "result": (msgspec.json.Decoder(frames.Result), AmpTranslator.on_result),
    "bridge/ask": (msgspec.json.Decoder(frames.Ask), AmpTranslator.on_ask),
    "bridge/ended": (msgspec.json.Decoder(frames.Ended), AmpTranslator.on_ended),
}


def _words(block: frames.Block) -> ContentPart | None:
    match block.type:
        case "text":
            return TextPart(text=block.text) if block.text else None
        case "thinking":
            return say.thought(block.thinking) if block.thinking else None
        case kind if kind == "tool_use" or kind in IGNORED_BLOCKS:
            return None
        case kind:
            raise Unreadable(f"Unknown block '{kind}'", "$.message.content[...].type")


def _file_changes(made: Item, block: frames.Block) -> list[Output]:
    """What the two tools that write files did."""
    call = say.use_of(made)
    if block.is_error or call.name not in {"create_file", "edit_file"}:
        return []
    known = _arguments(call.arguments.encode())
    if call.name == "create_file":
        return [*say.changed(known.path, "created", say.diff_of(known.path, "", known.content), made.item_id)]
    return [*say.changed(known.path, "modified", _own_diff(block.content), made.item_id)]


def _arguments(raw: bytes | msgspec.Raw) -> frames.Arguments:
    try:
        return msgspec.json.decode(raw, type=frames.Arguments)
    except msgspec.ValidationError:
        return frames.Arguments()  # of another tool, with other types


def _own_diff(content: str) -> str | None:
    """Amp's own diff, out of its fence."""
    try:
        diff = msgspec.json.decode(content, type=frames.Edited).diff
    except msgspec.DecodeError:
        return None
    return diff.removeprefix("```diff\n").removesuffix("```")


def _code(message: str) -> str:
    """Amp tells errors as text only."""
    words = message.lower()
    if "unauthorized" in words or words.startswith(("401", "403")):
        return "auth"
    return "rate_limit" if words.startswith("429") else "provider_error"


def _user_frame(prompt: Prompt) -> Send:
    message = {"role": "user", "content": say.blocks(prompt)}
    return Send(msgspec.json.encode({"type": "user", "message": message}))
