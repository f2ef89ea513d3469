"""The dialogue with one `codex app-server`: JSON-RPC lines, one thread for the session."""

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import msgspec

from ostler import __version__
from ostler.agents import jsonrpc, say
from ostler.agents.adapter import Output, Ready, StartFailed, TurnDone
from ostler.agents.asks import approves
from ostler.agents.codex import asks, frames
from ostler.agents.codex.events import on_notification
from ostler.agents.codex.requests import decide, on_request
from ostler.agents.codex.state import State
from ostler.agents.jsonrpc import Incoming, RpcError
from ostler.wire.agents import Model
from ostler.wire.events import ErrorData, PermissionMode, SessionInfoData
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt

Outputs = Sequence[Output]
APPROVALS: dict[PermissionMode, str] = {"default": "untrusted", "plan": "untrusted", "bypass": "never"}
"""Who is asked; "untrusted" asks for all but commands that only read. The runtime is the sandbox, not Codex's own."""
_models = msgspec.json.Decoder(frames.ModelList)
_thread = msgspec.json.Decoder(frames.ThreadResult)


class CodexTranslator:
    """One process, used for one session."""

    def __init__(self, spec: AgentSpec, *, has_login: bool = True) -> None:
        """Without a login Codex would try for half a minute before it says so."""
        self._state = State(spec)
        self._has_login = has_login

    def open(self) -> Outputs:
        """Say who we are; the thread follows when Codex has answered."""
        client = {"name": "ostler", "title": "Ostler", "version": __version__}
        params = {"clientInfo": client, "capabilities": {"experimentalApi": True}}
        return [self._state.calls.request("initialize", params)]

    def feed(self, frame: bytes) -> Outputs:
        """Translate one frame."""
        incoming = jsonrpc.read(frame)
        match incoming.kind:
            case "notification":
                return on_notification(self._state, incoming.method or "", incoming.params)
            case "request":
                return on_request(self._state, incoming.id if incoming.id is not None else "", incoming)
            case "response":
                return RESPONSES[self._state.calls.settle(incoming)](self._state, incoming)
            case _:
                assert_never(incoming.kind)

    def prompt(self, prompt: Prompt) -> Outputs:
        """Begin a turn."""
        self._state.begin()
        if not self._has_login:
            error = ErrorData(message="Codex is not logged in", code="auth")
            return [
                Draft("error", error, source="daemon", synthetic=True),
                TurnDone(outcome="failed", stop_reason="auth"),
            ]
        return [self._state.start_turn(content_of(prompt))]

    def steer(self, prompt: Prompt) -> Outputs | None:
        """Add to the running turn; None before Codex has begun it."""
        return self._state.steer(self._state.thread, content_of(prompt)) or None

    def interrupt(self) -> Outputs:
        """End the turn, or the one that is about to begin."""
        self._state.is_interrupted = True
        return self._state.stop_turns()

    def answer(self, answer: Answer) -> Outputs:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._state.asks.pop(answer.ask_id, None)
        if ask is None:
            return ()
        if ask.kind == "plan":
            return _on_plan(self._state, answer)
        return decide(self._state, ask, answer)


def content_of(prompt: Prompt) -> list[dict[str, Any]]:
    """A prompt as Codex takes it; it reads images from disk itself."""
    content: list[dict[str, Any]] = []
    for part in prompt.parts:
        match part:
            case TextPart():
                content.append({"type": "text", "text": part.text})
            case ImagePart():
                content.append({"type": "localImage", "path": part.path})
            case FileRefPart():
                content.append({"type": "text", "text": f"Attached file: {part.path}"})
            case _:
                assert_never(part)
    return content


def _on_plan(state: State, answer: Answer) -> Outputs:
    """Codex has ended its turn with a plan; ours goes on with another one of it, or ends."""
    if approves(answer):
        state.planning = False
        changed = Draft("session.info", SessionInfoData(mode="default"))
        return [changed, state.start_turn([{"type": "text", "text": asks.GO_ON}])]
    wishes = asks.another_plan(answer)
    if wishes is None:
        return [TurnDone(outcome="interrupted" if answer.withdrawn else "completed", stop_reason="plan_rejected")]
    return [state.start_turn([{"type": "text", "text": wishes}])]


# Responses


def _initialized(state: State, response: Incoming) -> Outputs:
    if response.error:
        return [StartFailed(response.error.message)]
    return [state.calls.notify("initialized", {}), state.calls.request("model/list", {})]


def _listed(state: State, response: Incoming) -> Outputs:
    if response.error is None:
        listed = say.read(response.result, _models).data
        state.models = tuple(_model(model) for model in listed if not model.hidden)
    if state.spec.resume is None:
        return [state.calls.request("thread/start", _thread_params(state.spec))]
    params = {**_thread_params(state.spec), "threadId": state.spec.resume, "excludeTurns": True}
    return [state.calls.request("thread/resume", params)]


def _model(model: frames.ListedModel) -> Model:
    variants = tuple(effort.reasoning_effort for effort in model.supported_reasoning_efforts)
    return Model(id=model.id, name=model.display_name, variants=variants)


def _thread_params(spec: AgentSpec) -> dict[str, Any]:
    chosen = {
        "cwd": spec.cwd,
        "approvalPolicy": APPROVALS[spec.permission_mode],
        "sandbox": "danger-full-access",
        "model": spec.model,
        "developerInstructions": spec.instructions,
    }
    return {name: value for name, value in chosen.items() if value}


def _resumed(state: State, response: Incoming) -> Outputs:
    if response.error is None:
        return _started(state, response)
    text = f"Codex could not go on with its thread and began a new one: {response.error.message}"
    return [say.notice(text, "resume_failed"), state.calls.request("thread/start", _thread_params(state.spec))]


def _started(state: State, response: Incoming) -> Outputs:
    if response.error:
        return [StartFailed(response.error.message)]
    result: frames.ThreadResult = say.read(response.result, _thread)
    state.thread, state.model = result.thread.id, result.model
    ready = Ready(
        native_session_id=state.thread,
        agent_version=result.thread.cli_version,
        model=result.model,
        mode="plan" if state.planning else "default",
        models=state.models,
    )
    return [ready]


def _turn_accepted(_: State, response: Incoming) -> Outputs:
    if response.error is None:
        return ()  # it can be steered and interrupted only once Codex says that it has started
    return [*_broken(response.error), TurnDone(outcome="failed", stop_reason="error")]


def _steered(state: State, response: Incoming) -> Outputs:
    if response.error is None:
        return ()
    state.unread = state.unread[:-1]
    return [say.notice(f"Codex did not take the message: {response.error.message}", "steer_failed")]


def _cleaned(state: State, response: Incoming) -> Outputs:
    if response.error is not None:
        state.commands.clear()  # nobody will tell that they are gone
    return state.finished()


def _broken(error: RpcError) -> Outputs:
    return [say.failure(error.message, "agent_error", {"code": error.code})]


RESPONSES: dict[str, Callable[[State, Incoming], Outputs]] = {
    "initialize": _initialized,
    "model/list": _listed,
    "thread/start": _started,
    "thread/resume": _resumed,
    "turn/start": _turn_accepted,
    "turn/steer": _steered,
    "turn/interrupt": lambda _, __: (),  # the turn's end is reported; an error says that it is over already
    "thread/backgroundTerminals/clean": _cleaned,
}
