"""The dialogue with one headless Copilot: JSON-RPC both ways, and a stream of session events."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, assert_never

import msgspec

from ostler.agents import jsonrpc, say
from ostler.agents.adapter import Output, Ready, StartFailed, TurnDone, Unreadable
from ostler.agents.copilot import asks, events, frames
from ostler.agents.copilot.turn import Turn
from ostler.wire.events import AgentUnparsedData
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer

_METHOD_NOT_FOUND = -32601


class CopilotTranslator:
    """One process, one session."""

    def __init__(self, spec: AgentSpec, opening: dict[str, Any], mode: str | None) -> None:
        self._spec = spec
        self._opening = opening
        self._mode = mode
        self._calls = jsonrpc.Calls()
        self._version: str | None = None
        self._opened: frames.SessionOpened | None = None
        self._accepted = False
        self._turn = Turn(spec.start, bypass=spec.permission_mode == "bypass")

    # What we say

    def open(self) -> Sequence[Output]:
        """Say hello; the session follows."""
        return (self._calls.request("connect", {"supportedTaskKinds": ["agent", "client", "shell"]}),)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        self._turn.begin()
        self._accepted = False
        return (self._request("session.send", _message(prompt)),)

    def steer(self, prompt: Prompt) -> Sequence[Output]:
        """Put it before the next model call; a command that runs now goes on in the background."""
        return (self._request("session.send", {**_message(prompt), "mode": "immediate"}),)

    def interrupt(self) -> Sequence[Output]:
        """Ask the agent to end its turn."""
        return (self._request("session.abort", {}),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._turn.asks.pop(answer.ask_id, None)
        if ask is None:
            return ()
        match answer:
            case PermissionAnswer():
                return (self._decide(str(ask.native), asks.decision(answer)),)
            case QuestionAnswer():
                return (self._calls.respond(ask.native, asks.reply(ask, answer)),)
            case _:
                assert_never(answer)

    def _request(self, method: str, params: dict[str, Any]) -> Output:
        session = self._opened.session_id if self._opened is not None else None
        return self._calls.request(method, {"sessionId": session, **params})

    def _decide(self, request_id: str, result: dict[str, Any]) -> Output:
        params = {"requestId": request_id, "result": result}
        return self._request("session.permissions.handlePendingPermissionRequest", params)

    # What it says

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one frame."""
        message = jsonrpc.read(frame)
        match message.kind:
            case "response":
                return self._on_response(message)
            case "request":
                return self._on_request(message)
            case "notification":
                return self._on_notification(message)
            case _:
                assert_never(message.kind)

    def _on_notification(self, message: jsonrpc.Incoming) -> Sequence[Output]:
        if message.method in SILENT_NOTIFICATIONS:
            return ()
        if message.method != "session.event":
            raise Unreadable(f"Unknown notification '{message.method}'", "$.method")
        event = say.read(message.params, frames.EventNotice, "$.params").event
        outputs = list(events.translate(self._turn, event))
        if self._turn.todos_changed:
            self._turn.todos_changed = False
            outputs.append(self._request("session.plan.readSqlTodos", {}))
        for request_id in self._turn.take_approvals():
            outputs.append(self._decide(request_id, {"kind": "approve-once"}))
        return outputs

    def _on_request(self, message: jsonrpc.Incoming) -> Sequence[Output]:
        if message.id is None:
            raise Unreadable("A request without an id", "$.id")
        ask_id = f"que_{self._spec.start}_{message.id}"
        match message.method:
            case "userInput.request":
                asked = say.read(message.params, frames.UserInputRequest, "$.params")
                return self._ask(asks.question(ask_id, message.id, asked, self._turn.asker(asked.question)))
            case "exitPlanMode.request":
                wanted = say.read(message.params, frames.ExitPlanRequest, "$.params")
                return self._ask(asks.plan_approval(ask_id, message.id, wanted, self._turn.asker("")))
            case _:
                unknown = AgentUnparsedData(error=f"Unknown request '{message.method}'", location="$.method")
                refusal = self._calls.refuse(message.id, _METHOD_NOT_FOUND, "Ostler does not do this.")
                return refusal, Draft("agent.unparsed", unknown)

    def _ask(self, ask: asks.Ask) -> Sequence[Output]:
        self._turn.asks[ask.ask_id] = ask
        return (ask.requested,)

    # Answers to our requests

    def _on_response(self, message: jsonrpc.Incoming) -> Sequence[Output]:
        method = self._calls.settle(message)
        if message.error is not None:
            return self._on_failure(method, message.error)
        handler = RESULTS.get(method)
        return () if handler is None else handler(self, message.result)

    def _on_failure(self, method: str, error: jsonrpc.RpcError) -> Sequence[Output]:
        if method == "session.resume":
            lost = f"The conversation could not be resumed, so the agent has forgotten it. {error.message}"
            return say.notice(lost, "resume_failed"), self._calls.request("session.create", self._opening)
        if method in {"connect", "session.create", "session.mode.set"}:
            return (StartFailed(error.message),)
        draft = say.failure(error.message, "agent_error", {"method": method})
        if method == "session.send" and not self._accepted:
            return draft, TurnDone(outcome="failed", stop_reason="not_accepted")
        return (draft,)

    def on_connected(self, result: msgspec.Raw) -> Sequence[Output]:
        """It is there: make the session, or go on with one."""
        self._version = say.read(result, frames.Connected, "$.result").version
        if self._spec.resume is None:
            return (self._calls.request("session.create", self._opening),)
        return (self._calls.request("session.resume", {**self._opening, "sessionId": self._spec.resume}),)

    def on_session(self, result: msgspec.Raw) -> Sequence[Output]:
        """The session is there: choose its mode."""
        self._opened = say.read(result, frames.SessionOpened, "$.result")
        if self._mode is not None and self._mode != self._opened.mode:
            return (self._request("session.mode.set", {"mode": self._mode}),)
        return self.on_mode(result)

    def on_mode(self, _: msgspec.Raw) -> Sequence[Output]:
        """All is set."""
        if self._opened is None:
            raise Unreadable("A mode without a session", "$.id")
        ready = Ready(
            native_session_id=self._opened.session_id,
            agent_version=self._version,
            model=self._opened.model_state.model_id,
            mode=self._mode or self._opened.mode,
        )
        return (ready,)

    def on_accepted(self, _: msgspec.Raw) -> Sequence[Output]:
        """The prompt is under way."""
        self._accepted = True
        return ()

    def on_todos(self, result: msgspec.Raw) -> Sequence[Output]:
        """The agent's todo table, whole."""
        rows = say.read(result, frames.TodoRows, "$.result").rows
        known = [("completed" if row.status == "done" else row.status or "", row) for row in rows]
        return (say.plan(say.step(row.title or row.description or row.id or "", status) for status, row in known),)


SILENT_NOTIFICATIONS = {
    "session.lifecycle": "for lists of sessions",
    "host.event": "for windows that show background tasks",
}
RESULTS: dict[str, Callable[[CopilotTranslator, msgspec.Raw], Sequence[Output]]] = {
    "connect": CopilotTranslator.on_connected,
    "session.create": CopilotTranslator.on_session,
    "session.resume": CopilotTranslator.on_session,
    "session.mode.set": CopilotTranslator.on_mode,
    "session.send": CopilotTranslator.on_accepted,
    "session.plan.readSqlTodos": CopilotTranslator.on_todos,
}


def _message(prompt: Prompt) -> dict[str, Any]:
    text = "\n".join(part.text for part in prompt.parts if isinstance(part, TextPart))
    attachments = [
        _image(prompt, part) if isinstance(part, ImagePart) else _file(part)
        for part in prompt.parts
        if isinstance(part, ImagePart | FileRefPart)
    ]
    return {"prompt": text, "attachments": attachments} if attachments else {"prompt": text}


def _image(prompt: Prompt, part: ImagePart) -> dict[str, Any]:
    kind, data = say.image(prompt, part)
    return {"type": "blob", "data": data, "mimeType": kind, "displayName": PurePath(part.path).name}


def _file(part: FileRefPart) -> dict[str, Any]:
    return {"type": "file", "path": part.path, "displayName": PurePath(part.path).name}
