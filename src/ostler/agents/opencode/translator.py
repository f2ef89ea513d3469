"""OpenCode's server as a pure dialogue: requests out; responses and server-sent events in."""

import mimetypes
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send, StartFailed
from ostler.agents.asks import approves
from ostler.agents.opencode import asks, frames
from ostler.agents.opencode.events import on_event
from ostler.agents.opencode.talk import OK, Body, Talk, reason
from ostler.agents.opencode.turn import Turn
from ostler.wire.agents import Mode, Model
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.running import AgentSpec, Answer, Prompt

TITLE = "Ostler"
"""Given so that OpenCode does not ask the model for one."""


class OpenCodeTranslator:
    """The dialogue with one server about one session."""

    def __init__(self, spec: AgentSpec, *, model: tuple[str, str] | None, mode: str | None) -> None:
        self._talk = Talk(spec, mode)
        self._model = model
        self._models: tuple[Model, ...] = ()
        self._modes: tuple[Mode, ...] = ()

    def open(self) -> Sequence[Output]:
        """Ask what is on offer, then make or find the session."""
        resume = self._talk.spec.resume
        return (
            self._talk.request(self._on_providers, "GET", "/config/providers"),
            self._talk.request(self._on_agents, "GET", "/agent"),
            self._create() if resume is None else self._find(resume),
        )

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one frame."""
        decoded = say.read(frame, frames.Frame)
        if decoded.response is not None:
            return self._talk.respond(decoded.response, decoded.status, decoded.body)
        return on_event(self._talk, say.read(decoded.event, frames.Event))

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        self._talk.turn = Turn(say.text_of(prompt))
        return (self._send_prompt(prompt),)

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        """Add to the running turn; OpenCode takes it up at the next step."""
        if self._talk.turn is None:
            return None
        self._talk.turn.awaited += 1
        self._talk.turn.texts.append(say.text_of(prompt))
        return (self._send_prompt(prompt),)

    def interrupt(self) -> Sequence[Output]:
        """Abort the turn; one that has not begun to work is aborted when it does."""
        turn = self._talk.turn
        if turn is None:
            return ()
        turn.interrupted = True
        return (self._talk.abort(turn),) if turn.messages else ()

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._talk.asks.pop(answer.ask_id, None)
        if ask is None:
            return ()
        path, body = asks.reply(ask, answer)
        outputs: list[Output] = [self._talk.request(self._on_answered, "POST", path, body)]
        if ask.kind == "plan" and approves(answer):
            outputs += self._talk.switch_mode("build")
        return outputs

    # The handshake

    def _create(self) -> Send:
        return self._talk.request(self._on_session, "POST", "/session", {"title": TITLE})

    def _find(self, native: str) -> Send:
        return self._talk.request(self._on_found, "GET", f"/session/{quote(native, safe='')}")

    def _on_providers(self, status: int, body: Body) -> Sequence[Output]:
        if status not in OK:
            return ()  # the session will fail with the same reason
        offered = [
            (provider.id, model)
            for provider in say.read(body, frames.Providers).providers
            for model in provider.models.values()
        ]
        self._models = tuple(
            Model(id=f"{provider}/{model.id}", name=model.name, variants=tuple(model.variants or ()))
            for provider, model in offered
        )
        windows = {(provider, model.id): model.limit.context for provider, model in offered if model.limit}
        self._talk.window = windows.get(self._model) if self._model else None
        return ()

    def _on_agents(self, status: int, body: Body) -> Sequence[Output]:
        if status in OK:
            self._modes = tuple(
                Mode(id=agent.name, name=agent.name.capitalize(), description=agent.description or "")
                for agent in say.read(body, tuple[frames.OfferedAgent, ...])
                if agent.mode != "subagent" and not agent.hidden
            )
        return ()

    def _on_found(self, status: int, body: Body) -> Sequence[Output]:
        if status in OK:
            return self._on_session(status, body)
        lost = f"OpenCode no longer has the conversation {self._talk.spec.resume}; a new one begins."
        return say.notice(lost, "resume_failed"), self._create()

    def _on_session(self, status: int, body: Body) -> Sequence[Output]:
        if status not in OK:
            return (StartFailed(f"No session could be made: {reason(status, body)}"),)
        session = say.read(body, frames.Session)
        self._talk.session = session.id
        self._talk.parents[session.id] = None
        ready = Ready(
            native_session_id=session.id,
            agent_version=session.version,
            model="/".join(self._model) if self._model else None,
            mode=self._talk.mode or "build",
            models=self._models,
            modes=self._modes,
        )
        return (ready,) if self._talk.spec.shared is None else (self._talk.abort_at_the_end(), ready)

    # The conversation

    def _send_prompt(self, prompt: Prompt) -> Send:
        chosen: dict[str, Any] = {"agent": self._talk.mode, "variant": self._talk.spec.variant}
        if self._model is not None:
            chosen["model"] = {"providerID": self._model[0], "modelID": self._model[1]}
        body = {name: value for name, value in chosen.items() if value is not None}
        body["parts"] = [_input(part) for part in prompt.parts]
        return self._talk.request(self._on_prompted, "POST", f"/session/{self._talk.session}/prompt_async", body)

    def _on_prompted(self, status: int, body: Body) -> Sequence[Output]:
        turn = self._talk.turn
        if status in OK or turn is None:
            return ()
        turn.refuse()
        return say.failure(reason(status, body), "agent_error"), *self._talk.settle()

    def _on_answered(self, status: int, body: Body) -> Sequence[Output]:
        if status in OK or status == 404:  # 404: the turn was over before the answer came
            return ()
        return (say.notice(f"OpenCode did not take the answer: {reason(status, body)}", "answer_failed"),)


def _input(part: TextPart | ImagePart | FileRefPart) -> dict[str, Any]:
    """A piece of a prompt; OpenCode reads files itself."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    path = PurePath(part.path)
    guessed = mimetypes.guess_type(path.name)[0]
    mime = (part.mime or guessed or "image/png") if isinstance(part, ImagePart) else "text/plain"
    return {"type": "file", "mime": mime, "filename": path.name, "url": path.as_uri()}
