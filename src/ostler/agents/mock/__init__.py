"""The mock agent: launches our own small program and translates its frames (protocol: programs/mock/agent.py).

Thoughts are parts of the message they belong to, so a message's parts stand in the order they were streamed.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec

from ostler import __version__
from ostler.agents import instructions, say
from ostler.agents.adapter import (
    Credential,
    Info,
    Installation,
    Launch,
    Login,
    Offered,
    Output,
    Ready,
    Send,
    TurnDone,
    Unreadable,
    all_but,
)
from ostler.agents.asks import asked, permission_asked
from ostler.agents.mock import frames as frames
from ostler.agents.sources import Builtin, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Command, Mode, Model
from ostler.wire.events import Cost, ErrorData, SessionInfoData, UsageUpdatedData
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, TextPart, ToolCallPart
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer

PROGRAM = Path(__file__).parents[2] / "programs" / "mock" / "agent.py"
INFO = Info(
    id="mock",
    name="Mock",
    login=Login(is_needed=False),
    capabilities=all_but("mcp_tools", "shared_process", "subagents"),
    modes=(
        Mode(id="build", name="Build", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Looks and talks, but changes no file and runs no command."),
    ),
    models=(
        Model(id="mock-small", name="Mock small", variants=("low", "high")),
        Model(id="mock-large", name="Mock large", variants=("low", "high")),
    ),
)
COMMANDS = (
    Command(name="demo", description="Shows what the mock agent can do."),
    Command(name="tea", description="Speaks of tea.", hint="[kind]"),
)

_decoder: msgspec.json.Decoder[frames.AnyFrame] = msgspec.json.Decoder(frames.AnyFrame)


class MockTranslator:
    """The dialogue with one mock process."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._messages: dict[int, str] = {}
        self._tools: dict[int, frames.ToolStart] = {}

    def open(self) -> Sequence[Output]:
        """The agent says ready by itself."""
        return ()

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one frame."""
        try:
            decoded = _decoder.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise say.unreadable(error) from error
        return HANDLERS[type(decoded)](self, decoded)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        return (Send(_user_frame("prompt", prompt)),)

    def steer(self, prompt: Prompt) -> Sequence[Output]:
        """Add to the running turn."""
        return (Send(_user_frame("steer", prompt)),)

    def interrupt(self) -> Sequence[Output]:
        """Ask the agent to end its turn."""
        return (Send(msgspec.json.encode({"type": "interrupt"})),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        prefix, _, native = answer.ask_id.rpartition("_")
        if prefix not in {f"per_{self._start}", f"que_{self._start}"}:
            return ()
        match answer:
            case PermissionAnswer():
                frame = {"type": "reply", "id": int(native), "allow": answer.allow, "message": answer.message}
            case QuestionAnswer():
                frame = {"type": "answer", "id": int(native), "answers": answer.answers, "message": answer.message}
            case _:
                assert_never(answer)
        return (Send(msgspec.json.encode(frame)),)

    def name(self, prefix: str, native: int) -> str:
        """An id that is unique in the session."""
        return f"{prefix}_{self._start}_{native}"

    def item_of(self, tool: int | None) -> str | None:
        """The item of an open tool call, if one is meant."""
        return None if tool is None else self.name("itm", self.tool(tool).id)

    def tool(self, native: int) -> frames.ToolStart:
        """An open tool call."""
        if native not in self._tools:
            raise Unreadable(f"No tool call {native} is open", "$.id")
        return self._tools[native]

    def open_tool(self, frame: frames.ToolStart) -> None:
        """Remember a call until it is answered."""
        self._tools[frame.id] = frame

    def grow_tool(self, native: int, text: str) -> frames.ToolStart:
        """More of the input of an open tool call."""
        call = self.tool(native)
        self._tools[native] = msgspec.structs.replace(call, input=msgspec.Raw(bytes(call.input) + text.encode()))
        return call

    def close_tool(self, native: int) -> frames.ToolStart:
        """Forget a call that was answered."""
        call = self.tool(native)
        del self._tools[native]
        return call

    def open_message(self, native: int) -> str:
        """The item of a message that opens now."""
        item_id = self._messages[native] = self.name("itm", native)
        return item_id

    def message(self, native: int) -> str:
        """The item of an open message."""
        item_id = self._messages.get(native)
        if item_id is None:
            raise Unreadable(f"No message {native} is open", "$.id")
        return item_id

    def close_message(self, native: int) -> str:
        """The item of a message that is final now."""
        item_id = self.message(native)
        del self._messages[native]
        return item_id


def _ready(_: MockTranslator, frame: frames.ReadyFrame) -> Sequence[Output]:
    ready = Ready(native_session_id=frame.session, agent_version=__version__, model=frame.model, mode=frame.mode)
    return (Offered(commands=COMMANDS), ready)


def _message_start(state: MockTranslator, frame: frames.MessageStart) -> Sequence[Output]:
    return (say.opened(say.message(state.open_message(frame.id), str(frame.id))),)


def _text(state: MockTranslator, frame: frames.Text) -> Sequence[Output]:
    return (say.grown(state.message(frame.id), TextPart(text=frame.delta), str(frame.id)),)


def _thinking(state: MockTranslator, frame: frames.Thinking) -> Sequence[Output]:
    return (say.grown(state.message(frame.id), say.thought(frame.delta), str(frame.id)),)


def _message_end(state: MockTranslator, frame: frames.MessageEnd) -> Sequence[Output]:
    return (_completed(say.message(state.close_message(frame.id), str(frame.id)), frame.parts),)


def _message(state: MockTranslator, frame: frames.Message) -> Sequence[Output]:
    item = say.message(state.name("itm", frame.id), str(frame.id))
    return say.opened(item), _completed(item, frame.parts)


def _tool_start(state: MockTranslator, frame: frames.ToolStart) -> Sequence[Output]:
    state.open_tool(frame)
    return (say.opened(_call(state, frame)),)


def _tool_input(state: MockTranslator, frame: frames.ToolInput) -> Sequence[Output]:
    call = state.grow_tool(frame.id, frame.delta)
    part = ToolCallPart(name=call.name, arguments=frame.delta, call_id=str(call.id))
    return (say.grown(state.name("itm", call.id), part, str(call.id)),)


def _tool_output(state: MockTranslator, frame: frames.ToolOutput) -> Sequence[Output]:
    return (say.printed(frame.data, state.item_of(frame.id), frame.stream),)


def _tool_end(state: MockTranslator, frame: frames.ToolEnd) -> Sequence[Output]:
    return say.answered(_call(state, state.close_tool(frame.id)), frame.output, failed=not frame.ok)


def _file(state: MockTranslator, frame: frames.FileFrame) -> Sequence[Output]:
    return say.changed(frame.path, frame.action, frame.diff, state.item_of(frame.tool), frame.operation)


def _permission(state: MockTranslator, frame: frames.PermissionFrame) -> Sequence[Output]:
    data = permission_asked(state.name("per", frame.id), frame.action, frame.tool)
    return (Draft("permission.requested", data),)


def _question(state: MockTranslator, frame: frames.QuestionFrame) -> Sequence[Output]:
    if not frame.questions:
        raise Unreadable("A question ask without questions", "$.questions")
    return (Draft("question.requested", asked(state.name("que", frame.id), frame.questions)),)


def _plan(_: MockTranslator, frame: frames.PlanFrame) -> Sequence[Output]:
    return (say.plan(frame.entries),)


def _usage(_: MockTranslator, frame: frames.UsageFrame) -> Sequence[Output]:
    data = UsageUpdatedData(
        input_tokens=frame.input,
        output_tokens=frame.output,
        cost=None if frame.cost is None else Cost(amount=frame.cost, currency="USD"),
        context_used=frame.context_used,
        context_window=frame.context_window,
    )
    return (Draft("usage.updated", data),)


def _title(_: MockTranslator, frame: frames.TitleFrame) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(title=frame.title)),)


def _unheard(_: MockTranslator, frame: frames.Unheard) -> Sequence[Output]:
    return [say.unheard(text) for text in frame.texts]


def _error(_: MockTranslator, frame: frames.ErrorFrame) -> Sequence[Output]:
    ends = say.time_of(frame.resets_at)
    return (
        Draft("error", ErrorData(message=frame.message, code="rate_limit" if ends else "agent_error", resets_at=ends)),
    )


def _done(_: MockTranslator, frame: frames.Done) -> Sequence[Output]:
    return (TurnDone(outcome=frame.outcome, stop_reason=frame.reason),)


HANDLERS: dict[type[frames.Incoming], Callable[[MockTranslator, Any], Sequence[Output]]] = {
    frames.ReadyFrame: _ready,
    frames.MessageStart: _message_start,
    frames.Text: _text,
    frames.Thinking: _thinking,
    frames.MessageEnd: _message_end,
    frames.Message: _message,
    frames.ToolStart: _tool_start,
    frames.ToolInput: _tool_input,
    frames.ToolOutput: _tool_output,
    frames.ToolEnd: _tool_end,
    frames.FileFrame: _file,
    frames.PermissionFrame: _permission,
    frames.QuestionFrame: _question,
    frames.PlanFrame: _plan,
    frames.UsageFrame: _usage,
    frames.TitleFrame: _title,
    frames.Unheard: _unheard,
    frames.ErrorFrame: _error,
    frames.Done: _done,
}


def _completed(item: Item, parts: Sequence[frames.MessagePart]) -> Draft:
    return say.closed(msgspec.structs.replace(item, content=tuple(map(_part, parts))), "completed")


def _part(part: frames.MessagePart) -> ContentPart:
    match part.kind:
        case "text":
            return TextPart(text=part.text)
        case "thinking":
            return say.thought(part.text)
        case _:
            assert_never(part.kind)


def _call(state: MockTranslator, call: frames.ToolStart) -> Item:
    return say.call(state.name("itm", call.id), call.name, call.input, str(call.id))


def _user_frame(kind: str, prompt: Prompt) -> bytes:
    return msgspec.json.encode(
        {
            "type": kind,
            "text": say.text_of(prompt),
            "images": [part.path for part in prompt.parts if isinstance(part, ImagePart)],
            "files": [part.path for part in prompt.parts if isinstance(part, FileRefPart)],
        }
    )


class MockAdapter:
    """The agent that ships with Ostler."""

    info = INFO
    sources: tuple[Source, ...] = (
        Builtin(program="ostler-mock-agent", command=(sys.executable, "-I", "-S", str(PROGRAM)), version=__version__),
    )
    """It ships with us; the benchmarks put another one in its place."""
    credentials: tuple[Credential, ...] = ()
    """It needs none."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; a model, variant or mode it does not have is refused here."""
        _check("model", spec.model, tuple(model.id for model in INFO.models))
        _check("variant", spec.variant, INFO.models[0].variants)
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        flags = {
            "--model": spec.model,
            "--variant": spec.variant,
            "--mode": spec.mode,
            "--permission-mode": spec.permission_mode,
            "--resume": spec.resume,
            "--instructions": instructions.path_of(spec),
        }
        given = [text for flag, value in flags.items() if value is not None for text in (flag, value)]
        return Launch(argv=(*installation.command, *given), files=instructions.files_of(spec))

    def translator(self, spec: AgentSpec) -> MockTranslator:
        """A fresh translator for one process."""
        return MockTranslator(spec.start)


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'mock' has no {what} '{value}'. Possible: {', '.join(possible)}.")
