"""The dialogue with one ACP agent process, as a pure state machine: tables of small functions, one per message.

Beside the protocol it knows what agents do in spite of it: tool calls that are never announced, and history that is
sent again after a load. The reason of a rejection has no place in an answer, so it follows as a prompt of its own.
"""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from ostler.agents import say
from ostler.agents.acp import asks, frames
from ostler.agents.acp.errors import described
from ostler.agents.acp.handshake import ANSWERS
from ostler.agents.acp.messages import Spent
from ostler.agents.acp.profile import Profile
from ostler.agents.acp.session import GREETING
from ostler.agents.acp.state import AcpState, mode_is, params, result
from ostler.agents.acp.tools import Call
from ostler.agents.acp.updates import updated
from ostler.agents.adapter import Output, TurnDone, Unreadable
from ostler.agents.instructions import instructed
from ostler.agents.jsonrpc import Incoming, read
from ostler.wire.events import AgentUnparsedData, TurnOutcome
from ostler.wire.parts import FileRefPart, ImagePart, PromptPart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt

_OUTCOMES: dict[str, TurnOutcome] = {"cancelled": "interrupted", "refusal": "failed"}
_METHOD_NOT_FOUND = -32601
_CANCELLED = -32800


class AcpTranslator:
    """The dialogue with one process."""

    def __init__(self, profile: Profile, spec: AgentSpec) -> None:
        self._state = AcpState(profile, spec)

    def open(self) -> Sequence[Output]:
        """Greet the agent."""
        return (self._state.rpc.request("initialize", GREETING),)

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one message."""
        if frame.startswith(self._state.profile.chatter):
            return ()
        message = read(frame)
        match message.kind:
            case "request" if message.id is not None:
                return self._on_request(message.id, message)
            case "notification":
                return self._on_notification(message)
            case _:
                return RESPONSES[self._state.rpc.settle(message)](self._state, message)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        if not (self._state.talks or self._state.resumed) and self._state.profile.tells(self._state.spec):
            prompt = instructed(prompt, self._state.spec)
        self._state.talks = True
        self._state.interrupted = False
        self._state.hush()
        self._state.spent = Spent()
        left_over = self._state.messages.close()
        return *left_over, self._state.say([_block(self._state, prompt, part) for part in prompt.parts])

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        """Keep it until the agent fetches it; most agents never do."""
        texts = [part.text for part in prompt.parts if isinstance(part, TextPart)]
        if not self._state.profile.steers or len(texts) != len(prompt.parts):
            return None
        self._state.steered.append("\n".join(texts))
        return ()

    def interrupt(self) -> Sequence[Output]:
        """Ask the agent to end its turn."""
        self._state.interrupted = True
        self._state.hush()
        return (self._state.rpc.notify("session/cancel", {"sessionId": self._state.session_id}),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._state.open_asks.pop(answer.ask_id, None)
        if ask is None:
            return ()
        if (why := asks.reason(ask, answer)) is not None:
            what = "the plan" if ask.kind == "plan" else "this action"
            self._state.reasons.append(f"I rejected {what}. The reason: {why}")
        return (self._state.rpc.respond(ask.request_id, asks.result(ask, answer)),)

    def _on_request(self, request_id: int | str, message: Incoming) -> Sequence[Output]:
        handler = REQUESTS.get(message.method or "")
        if handler is not None:
            return handler(self._state, request_id, message)
        refusal = self._state.rpc.refuse(request_id, _METHOD_NOT_FOUND, f"Method not found: {message.method}")
        if (message.method or "").startswith("_"):
            return (refusal,)  # an extension, by the rules of the protocol
        odd = AgentUnparsedData(error=f"Unknown request '{message.method}'", location="$.method")
        return refusal, Draft("agent.unparsed", odd)

    def _on_notification(self, message: Incoming) -> Sequence[Output]:
        handler = NOTIFICATIONS.get(message.method or "")
        if handler is not None:
            return handler(self._state, message)
        if (message.method or "").startswith("_"):
            return ()  # an extension, by the rules of the protocol
        raise Unreadable(f"Unknown notification '{message.method}'", "$.method")


# Turns


def _prompted(state: AcpState, message: Incoming) -> Sequence[Output]:
    drafts: list[Output] = [*state.messages.close()]
    if message.error is not None:
        state.end_turn()
        if state.interrupted:
            return *drafts, TurnDone(outcome="interrupted", stop_reason="cancelled")
        return *drafts, Draft("error", described(message.error)), TurnDone(outcome="failed", stop_reason="error")
    answer = result(message, frames.Prompted)
    drafts += state.spent.turn(answer)
    if (state.reasons or state.steered) and not state.interrupted:
        return *drafts, state.again()
    state.end_turn()
    outcome = "interrupted" if state.interrupted else _OUTCOMES.get(answer.stop_reason, "completed")
    return *drafts, TurnDone(outcome=outcome, stop_reason=answer.stop_reason)


RESPONSES: dict[str, Callable[[AcpState, Incoming], Sequence[Output]]] = {**ANSWERS, "session/prompt": _prompted}


# Requests of the agent


def _permission(state: AcpState, request_id: int | str, message: Incoming) -> Sequence[Output]:
    request = params(message, frames.RequestPermission)
    drafts, call = _asking_call(state, request.tool_call)
    if (asked := asks.answers_wanted(request)) is not None:
        return *drafts, *state.ask(asks.questions(state.number(), call, request, request_id, asked))
    if asks.is_plan(call):
        return *drafts, *state.ask(asks.plan(state.number(), call, request, request_id))
    if state.spec.permission_mode == "bypass":
        return *drafts, state.rpc.respond(request_id, asks.once(request.options, yes=True))
    return *drafts, *state.ask(asks.permission(state.number(), call, request, request_id))


def _asking_call(state: AcpState, tool_call: frames.ToolCall) -> tuple[list[Output], Call]:
    """The tool call that a permission is asked for, which may be mentioned for the first time."""
    drafts: list[Output] = [*state.messages.close()]
    is_stand_in = state.profile.stand_in is not None and tool_call.tool_call_id.startswith(state.profile.stand_in)
    if is_stand_in and (last := state.tools.last()) is not None:
        return drafts, last
    drafts += state.tools.take(tool_call, begins=True, asks=True)
    return drafts, state.tools.of(tool_call)


def _elicitation(state: AcpState, request_id: int | str, message: Incoming) -> Sequence[Output]:
    request = params(message, frames.Elicitation)
    last = state.tools.last()
    item_id = state.tools.item_of(request.tool_call_id) or (last.item_id if last else None)
    return state.ask(asks.elicitation(state.number(), item_id, request, request_id))


def _not_offered(state: AcpState, request_id: int | str, message: Incoming) -> Sequence[Output]:
    return (state.rpc.refuse(request_id, _METHOD_NOT_FOUND, f"Method not found: {message.method}"),)


def _drain(state: AcpState, request_id: int | str, message: Incoming) -> Sequence[Output]:
    """Qwen Code fetches what people said in the middle of a turn."""
    texts, state.steered = state.steered, []
    return (state.rpc.respond(request_id, {"messages": texts, "hasQueuedPrompt": False}),)


REQUESTS: dict[str, Callable[[AcpState, int | str, Incoming], Sequence[Output]]] = {
    "session/request_permission": _permission,
    "elicitation/create": _elicitation,
    "craft/drainMidTurnQueue": _drain,
    **dict.fromkeys(
        # we say in the greeting that we do none of these
        (
            "fs/read_text_file",
            "fs/write_text_file",
            "terminal/create",
            "terminal/output",
            "terminal/wait_for_exit",
            "terminal/kill",
            "terminal/release",
        ),
        _not_offered,
    ),
}


# Notifications of the agent


def _withdrawn(state: AcpState, message: Incoming) -> Sequence[Output]:
    native = params(message, frames.CancelRequest).request_id
    found = next((ask for ask in state.open_asks.values() if ask.request_id == native), None)
    if found is None:
        return ()
    del state.open_asks[found.ask_id]
    return found.withdrawn, state.rpc.refuse(native, _CANCELLED, "Request cancelled")


def _qwen_mode(_: AcpState, message: Incoming) -> Sequence[Output]:
    return (mode_is(params(message, frames.QwenMode).current_mode_id),)


def _ignored(_: AcpState, __: Incoming) -> Sequence[Output]:
    return ()


NOTIFICATIONS: dict[str, Callable[[AcpState, Incoming], Sequence[Output]]] = {
    "session/update": updated,
    "$/cancel_request": _withdrawn,
    "qwen/notify/session/mode-update": _qwen_mode,
    "elicitation/complete": _ignored,  # the person has answered the question already
}


def _block(state: AcpState, prompt: Prompt, part: PromptPart) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart() if state.can.prompt_capabilities.image:
            kind, data = say.image(prompt, part)
            return {"type": "image", "mimeType": kind, "data": data}
        case ImagePart() | FileRefPart():
            path = PurePath(state.spec.cwd, part.path)
            return {"type": "resource_link", "uri": path.as_uri(), "name": path.name}
