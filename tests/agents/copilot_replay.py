"""Plays a recording of Copilot against our side: what was said to it then is what the translator must say now."""

import json
from typing import Any

from ostler.agents.adapter import Installation, Launch
from ostler.agents.copilot import CopilotAdapter
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.events import (
    ErrorData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    PermissionData,
    QuestionData,
    SessionInfoData,
    TerminalOutputData,
    TurnEndedData,
)
from ostler.wire.items import PlanUpdatedData
from ostler.wire.parts import ContentPart, ImagePart, PromptPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.support.recorded import Recording, recordings

RECORDINGS = {recording.case: recording for recording in recordings("copilot")}
PROVIDER = Provider(type="openai", base_url="http://127.0.0.1:1", api_key="sk-test")
PICTURES = {"/w/dot.png": b"png"}
FAREWELL = {"session.detach", "runtime.shutdown"}


def spec_of(**changes: Any) -> AgentSpec:
    """A session that uses the given provider."""
    fields: dict[str, Any] = {
        "session_id": "ses_1",
        "agent": "copilot",
        "start": 1,
        "cwd": "/workspace",
        "home": "/home/ses_1",
        "env": {},
        "permission_mode": "default",
        "model": "scripted-large",
        "provider": PROVIDER,
        **changes,
    }
    return AgentSpec(**fields)


def launch_of(path: str = "/usr/bin/copilot", **changes: Any) -> Launch:
    """How a session is started."""
    return CopilotAdapter().prepare(spec_of(**changes), Installation(path=path, command=(path,)))


class Player:
    """Our side of a recorded dialogue."""

    def __init__(self, recording: Recording, **changes: Any) -> None:
        self.counts = Counts()
        self.drafts: list[Draft] = []
        self.sent: list[dict[str, Any]] = []
        self._recording = recording
        self._methods: dict[Any, str] = {}
        self._unanswered: list[dict[str, Any]] = []
        self._turns = 0
        translator = CopilotAdapter().translator(spec_of(**{**_wanted(recording), **changes}))
        self.dialogue = Dialogue(
            translator, start=1, max_frame_bytes=2**20, counts=self.counts, framing="content-length"
        )

    def play(self) -> list[Draft]:
        """All that the log would get."""
        for line in self._recording.lines:
            if line.dir == "in":
                self._said(line.data)
            else:
                self._heard(line.data)
            self.collect()
        return self.drafts

    def frames_sent(self, method: str) -> list[Any]:
        """The parameters of our requests of a method."""
        return [frame["params"] for frame in self.sent if frame.get("method") == method]

    def responses_sent(self) -> list[Any]:
        """Our answers to its requests."""
        return [frame["result"] for frame in self.sent if "result" in frame]

    def _said(self, data: dict[str, Any]) -> None:
        method = data.get("method")
        self._methods[data["id"]] = method or "response"
        params = data.get("params", {})
        match method:
            case "connect":
                self.dialogue.open()
            case "session.send":
                self._prompt(params)
            case "session.abort":
                self.dialogue.interrupt("interrupted")
            case "session.permissions.handlePendingPermissionRequest":
                self.dialogue.answer(self._decision(params["result"]))
            case None:
                self.dialogue.answer(self._choice(data["result"]))
            case _:
                pass  # the translator says it by itself

    def _prompt(self, params: dict[str, Any]) -> None:
        self._turns += 1
        images = [ImagePart(path="/w/dot.png", mime="image/png") for _ in params.get("attachments", ())]
        parts: tuple[PromptPart, ...] = (TextPart(text=params["prompt"]), *images)
        prompt = Prompt(prompt_id=f"p{self._turns}", turn_id=f"t{self._turns}", parts=parts, images=PICTURES)
        if params.get("mode") == "immediate":
            assert self.dialogue.steer(prompt)
        else:
            self.dialogue.prompt(prompt)

    def _decision(self, result: dict[str, Any]) -> Answer:
        ask = self.dialogue.guard.open_asks[0]
        assert isinstance(ask, PermissionData)
        allow = result["kind"] == "approve-once"
        return PermissionAnswer(ask_id=ask.permission_id, allow=allow, message=result.get("feedback"))

    def _choice(self, result: dict[str, Any]) -> Answer:
        ask = self.dialogue.guard.open_asks[0]
        assert isinstance(ask, QuestionData)
        return QuestionAnswer(ask_id=ask.question_id, answers=((result.get("answer", "Approve"),),))

    def _heard(self, data: dict[str, Any]) -> None:
        if "method" not in data:
            method = self._methods.get(data["id"])
            if method in FAREWELL:
                return
            asked = next((frame for frame in self._unanswered if frame["method"] == method), None)
            data = data if asked is None else {**data, "id": asked["id"]}
            self._unanswered = [frame for frame in self._unanswered if frame is not asked]
        self.hear(data)

    def hear(self, data: dict[str, Any]) -> None:
        """One more message of Copilot."""
        body = json.dumps(data).encode()
        self.dialogue.feed(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.collect()

    def collect(self) -> None:
        """Take what the dialogue wants logged and sent."""
        self.drafts += self.dialogue.take_drafts()
        for written in self.dialogue.take_sends():
            frame = json.loads(written.partition(b"\r\n\r\n")[2])
            self.sent.append(frame)
            if "method" in frame:
                self._unanswered.append(frame)


def _wanted(recording: Recording) -> dict[str, Any]:
    """What the session was opened with."""
    asked = {line.data["method"]: line.data["params"] for line in recording.lines if "method" in line.data}
    resumed = asked.get("session.resume", {}).get("sessionId")
    return {"resume": resumed, "permission_mode": "plan" if "session.mode.set" in asked else "default"}


def play(case: str, **changes: Any) -> Player:
    """A recording, played to its end."""
    player = Player(RECORDINGS[case], **changes)
    player.play()
    return player


def told(player: Player) -> list[str]:
    """What happened, in short; tokens and deltas are left out."""
    return [text for draft in player.drafts if draft.type != "item.delta" and (text := short(draft))]


def short(draft: Draft) -> str:
    """An event in a few words."""
    match draft.data:
        case ItemStartedData(item=item):
            below = f" below {item.parent_id}" if item.parent_id else ""
            return f"{item.kind} {item.item_id} starts{below}"
        case ItemDeltaData(delta=delta):
            return f"+ {_part(delta)}"
        case ItemCompletedData(item=item):
            return f"{item.kind} {item.item_id} {item.status}: {', '.join(map(_part, item.content))}"
        case PermissionData() as ask:
            return f"{draft.type} {ask.action} for {ask.item_id}"
        case QuestionData() as ask:
            return f"{draft.type} {ask.prompt!r} {list(ask.options)} for {ask.item_id}"
        case TerminalOutputData() as output:
            return f"{output.stream} {output.data!r} of {output.item_id}"
        case FileChangedData() as change:
            return f"{change.action} {change.path}"
        case PlanUpdatedData(entries=entries):
            return "plan " + ", ".join(f"{entry.content} {entry.status}" for entry in entries)
        case NoticeData() as notice:
            return f"notice {notice.code}"
        case ErrorData() as error:
            return f"error {error.code}: {error.message}"
        case SessionInfoData() as info:
            return f"session {info.native_session_id or ''} {info.mode}".replace("  ", " ")
        case TurnEndedData() as end:
            return f"turn {end.outcome}"
        case _:
            return ""


def _part(part: ContentPart) -> str:
    match part:
        case TextPart(text=text):
            return repr(text)
        case ReasoningPart(text=text):
            return f"({text})"
        case ToolCallPart(name=name):
            return name
        case ToolResultPart(output=output):
            return repr(output)
        case _:
            return part.type
