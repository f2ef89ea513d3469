"""Plays a recording of Claude Code through the translator and the guard, as the runner would."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import msgspec

from ostler.agents.claude_code import ClaudeCodeAdapter
from ostler.runner.execution.dialogue import Counts
from ostler.wire.events import (
    ErrorData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    PermissionData,
    QuestionData,
    TurnEndedData,
)
from ostler.wire.parts import ToolCallPart, ToolResultPart
from ostler.wire.running import AgentSpec, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.agents.overheard import Overheard
from tests.support.recorded import Recording

PLAIN = AgentSpec(
    session_id="ses_1",
    agent="claude-code",
    start=1,
    cwd="/workspace",
    home="/home/agent",
    env={},
    permission_mode="default",
)


def begun(spec: AgentSpec = PLAIN) -> Overheard:
    """A dialogue whose handshake was sent."""
    dialogue = Overheard(ClaudeCodeAdapter().translator(spec), start=spec.start, max_frame_bytes=2**20, counts=Counts())
    dialogue.open()
    return dialogue


class Replay:
    """One recording, played."""

    def __init__(self, recording: Recording) -> None:
        self.dialogue = begun()
        self.answers: list[tuple[Any, Any]] = []
        """What we answered, beside what was answered when it was recorded."""
        self._ids = {"req_1": "req_1"}
        self._turns = 0
        (handshake,) = self.dialogue.take_sends()
        assert msgspec.json.decode(handshake)["request"]["subtype"] == "initialize"
        for line in recording.lines:
            if line.dir == "out":
                self._hear(line.data)
            else:
                SAID[line.data["type"]](self, line.data)

    @property
    def drafts(self) -> list[Draft]:
        """All events."""
        return self.dialogue.drafts

    def _hear(self, frame: dict[str, Any]) -> None:
        if frame.get("type") == "control_response":
            response = frame["response"]
            frame = {**frame, "response": {**response, "request_id": self._ids[response["request_id"]]}}
        self.dialogue.feed(msgspec.json.encode(frame) + b"\n")

    def say(self, _: dict[str, Any]) -> None:
        """Words of the user; their text is of no interest to the translator."""
        self._turns += 1
        prompt = Prompt(prompt_id=f"prm_{self._turns}", turn_id=f"trn_{self._turns}", parts=())
        if self.dialogue.guard.turn_id is None:
            self.dialogue.prompt(prompt)
        else:
            assert self.dialogue.steer(prompt)

    def request(self, frame: dict[str, Any]) -> None:
        """The handshake was sent before; an interrupt gets the id that the recording has for it."""
        if frame["request"]["subtype"] == "interrupt":
            self.dialogue.take_sends()
            self.dialogue.interrupt("interrupted")
            (sent,) = self.dialogue.take_sends()
            self._ids[frame["request_id"]] = msgspec.json.decode(sent)["request_id"]

    def answer(self, frame: dict[str, Any]) -> None:
        """Decide an ask as it was decided then."""
        self.dialogue.take_sends()
        reply = frame["response"]
        for ask in self.dialogue.guard.open_asks:
            self.dialogue.answer(_answer(ask, reply["response"]))
        (sent,) = self.dialogue.take_sends()
        self.answers.append((msgspec.json.decode(sent), frame))


SAID: dict[str, Callable[[Replay, dict[str, Any]], None]] = {
    "user": Replay.say,
    "control_request": Replay.request,
    "control_response": Replay.answer,
}


def _answer(ask: PermissionData | QuestionData, response: dict[str, Any]) -> PermissionAnswer | QuestionAnswer:
    allowed = response["behavior"] == "allow"
    if isinstance(ask, PermissionData):
        return PermissionAnswer(ask_id=ask.permission_id, allow=allowed, message=response.get("message"))
    chosen = response["updatedInput"].get("answers", {"plan": "Approve"})
    return QuestionAnswer(ask_id=ask.question_id, answers=tuple((text,) for text in chosen.values()))


def brief(draft: Draft) -> str:
    """An event in a few words."""
    match draft.data:
        case ItemStartedData(item=item):
            return f"{item.kind} begins"
        case ItemCompletedData(item=item):
            return f"{item.kind} {item.status}: {' | '.join(map(_text, item.content))}"
        case PermissionData(action=action, status=status):
            return f"permission {status}: {action}"
        case QuestionData(prompt=prompt, options=options, status=status):
            return f"question {status}: {prompt} {list(options)}"
        case ErrorData(code=code, message=message):
            return f"error {code}: {message}"
        case NoticeData(code=code, message=message):
            return f"notice {code}: {message}"
        case FileChangedData(action=action, path=path):
            return f"{action} {path}"
        case TurnEndedData(outcome=outcome, stop_reason=reason):
            return f"turn {outcome}: {reason}"
        case _:
            return draft.type


def _text(part: Any) -> str:
    match part:
        case ToolCallPart(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResultPart(output=output):
            return output
        case _:
            return f"{part.type} {part.text!r}"


def story(drafts: list[Draft]) -> list[str]:
    """What happened, without what every turn has (session facts, tokens); a run of deltas is told as one."""
    told = [draft for draft in drafts if draft.type not in {"session.info", "usage.updated"}]
    return [text for kind, run in groupby(told, key=_run_of) for text in _told(kind, list(run))]


def _run_of(draft: Draft) -> str | None:
    return draft.data.delta.type if isinstance(draft.data, ItemDeltaData) else None


def _told(kind: str | None, run: list[Draft]) -> list[str]:
    if kind is None:
        return [brief(draft) for draft in run]
    return [f"+ {kind} {''.join(_piece(draft.data) for draft in run)!r}"]


def _piece(data: Any) -> str:
    return data.delta.arguments if isinstance(data.delta, ToolCallPart) else str(data.delta.text)
