"""Plays recordings of Codex to its translator; recorded responses get the ids of the translator's own requests."""

import json
from collections import defaultdict
from typing import Any

from ostler.agents.codex import CodexAdapter
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.events import PermissionData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.support.recorded import Recording, recordings

RECORDINGS = {recording.case: recording for recording in recordings("codex")}
ALLOWING = {"accept", "acceptForSession"}


def spec(**fields: Any) -> AgentSpec:
    """A session of Codex."""
    chosen: dict[str, Any] = {
        "session_id": "ses_1",
        "agent": "codex",
        "start": 1,
        "cwd": "/workspaces/codex",
        "home": "/homes/ses_1",
        "env": {},
        "permission_mode": "default",
        **fields,
    }
    return AgentSpec(**chosen)


class Replay:
    """One recording under way; `drafts` are what the log would get, `sent` what Codex would."""

    def __init__(self, recording: Recording, **fields: Any) -> None:
        self.counts = Counts()
        self.drafts: list[Draft] = []
        self.sent: list[dict[str, Any]] = []
        translator = CodexAdapter().translator(
            spec(**{"env": {"OPENAI_API_KEY": "sk-test"}, **_of(recording), **fields})
        )
        self.dialogue = Dialogue(translator, start=1, max_frame_bytes=2**20, counts=self.counts)
        self._ours: dict[str, list[int]] = defaultdict(list)
        self._recorded: dict[int, str] = {}
        self._turns = 0
        self._lines = recording.lines
        self._lists_models = any(line.data.get("method") == "model/list" for line in recording.lines)

    def run(self) -> list[Draft]:
        """All lines; the handshake asks for models, which most recordings did not."""
        self.dialogue.open()
        self.take()
        for line in self._lines:
            (self._write if line.dir == "in" else self._read)(dict(line.data))
            self.take()
            if "model/list" in self._ours and not self._lists_models:
                self.feed({"id": self._ours.pop("model/list").pop(), "result": {"data": []}})
        return self.drafts

    def feed(self, frame: dict[str, Any]) -> None:
        """Codex says something."""
        self.dialogue.feed(json.dumps(frame).encode() + b"\n")
        self.take()

    def answer(self, answer: Answer) -> None:
        """A person decides."""
        self.dialogue.answer(answer)
        self.take()

    def take(self) -> None:
        """Collect what came out."""
        self.drafts += self.dialogue.take_drafts()
        for frame in self.dialogue.take_sends():
            message = json.loads(frame)
            self.sent.append(message)
            if "method" in message and "id" in message:
                self._ours[message["method"]].append(message["id"])

    def _read(self, frame: dict[str, Any]) -> None:
        if "method" in frame:
            self.feed(frame)
        elif waiting := self._ours.get(self._recorded.get(frame["id"], "")):
            self.feed({**frame, "id": waiting.pop(0)})

    def _write(self, frame: dict[str, Any]) -> None:
        method = frame.get("method")
        if method is None:
            self._answer(frame["result"])
        elif "id" in frame:
            self._recorded[frame["id"]] = method
            self._request(method, frame["params"])

    def _request(self, method: str, params: dict[str, Any]) -> None:
        if method == "turn/start":
            self._turns += 1
            self.dialogue.prompt(_prompt(params, f"trn_{self._turns}"))
        elif method == "turn/steer":
            self.dialogue.steer(_prompt(params, f"trn_{self._turns}"))
        elif method == "turn/interrupt":
            self.dialogue.interrupt("interrupted")

    def _answer(self, result: dict[str, Any]) -> None:
        for ask in self.dialogue.guard.open_asks:
            if isinstance(ask, PermissionData):
                allow = bool(ALLOWING & {result.get("decision"), result.get("action")})
                self.dialogue.answer(PermissionAnswer(ask_id=ask.permission_id, allow=allow))
            else:
                answers = tuple(tuple(one["answers"]) for one in result["answers"].values())
                self.dialogue.answer(QuestionAnswer(ask_id=ask.question_id, answers=answers))


def _of(recording: Recording) -> dict[str, Any]:
    """What the session of a recording was made with."""
    requests = [line.data for line in recording.lines if line.dir == "in" and line.data.get("method")]
    resumed = [data["params"]["threadId"] for data in requests if data["method"] == "thread/resume"]
    modes = [data["params"].get("collaborationMode") for data in requests if data["method"] == "turn/start"]
    return {"resume": resumed[0] if resumed else None, "mode": "plan" if any(modes) else None}


def _prompt(params: dict[str, Any], turn_id: str) -> Prompt:
    text = "\n".join(part.get("text", "") for part in params["input"])
    return Prompt(prompt_id="prm_1", turn_id=turn_id, parts=(TextPart(text=text),))


def short(draft: Draft) -> tuple[str, str]:
    """An event as a person would tell it."""
    data: Any = draft.data
    match draft.type:
        case "item.started" | "item.completed":
            told = " ".join(_told(part) for part in data.item.content)
            text = f"{data.item.kind} {data.item.status} {told}".strip()
        case "item.delta":
            text = data.delta.text
        case "permission.requested" | "permission.resolved":
            text = f"{data.action} {data.status}"
        case "question.requested" | "question.resolved":
            text = f"{data.prompt} {data.status}"
        case "turn.ended":
            text = data.outcome
        case "error" | "notice":
            text = f"{data.code} {data.message}"
        case "file.changed" | "artifact.created":
            text = f"{data.action} {data.path}"
        case _:
            text = ""
    return draft.type, text


def _told(part: Any) -> str:
    return str(getattr(part, "text", None) or getattr(part, "output", None) or getattr(part, "name", ""))


def story(drafts: list[Draft], *without: str) -> list[tuple[str, str]]:
    """All events in short, without the counting of tokens."""
    return [short(draft) for draft in drafts if draft.type not in {"usage.updated", *without}]
