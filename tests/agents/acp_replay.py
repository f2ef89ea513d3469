"""Plays a recording of a real ACP agent against our translator, as if the agent were there.

Our requests need not be those of the recording: answers go to our request of the same purpose, what only we ask for is
granted, and answers to what only the recorder asked for are left out.
"""

import json
from typing import Any

import msgspec

from ostler.agents.acp import AcpAdapter
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.events import PermissionData, QuestionData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.support.recorded import Line, Recording

OPENINGS = {"session/new", "session/load", "session/resume"}
GRANTED = {"session/set_mode", "session/set_model", "session/set_config_option", "_ostler/echo"}
SPEC: dict[str, Any] = {
    "session_id": "ses_1",
    "agent": "acp",
    "start": 1,
    "cwd": "/workspace",
    "home": "/home",
    "env": {},
    "permission_mode": "default",
}


def spec_of(recording: Recording, **fields: Any) -> AgentSpec:
    """A session like the recorded one."""
    loaded = [
        line.data["params"]["sessionId"] for line in recording.lines if _method(line) in OPENINGS - {"session/new"}
    ]
    return AgentSpec(**{**SPEC, "resume": loaded[0] if loaded else None, **fields})


class Replay:
    """One recording under way; `drafts` and `sent` hold everything that came of it."""

    def __init__(self, adapter: AcpAdapter, recording: Recording, **fields: Any) -> None:
        self.counts = Counts()
        self.drafts: list[Draft] = []
        self.sent: list[dict[str, Any]] = []
        self._waiting: dict[str, int] = {}
        self._recorded: dict[int | str, str] = {}
        self._turns = 0
        translator = adapter.translator(spec_of(recording, **fields))
        self._dialogue = Dialogue(translator, start=1, max_frame_bytes=2**24, counts=self.counts)
        self._dialogue.open()
        self._settle()
        for line in recording.lines:
            (self._heard if line.dir == "out" else self._said)(line)

    def _heard(self, line: Line) -> None:
        data = line.data
        if "method" not in data:
            purpose = self._recorded.pop(data["id"], "")
            if purpose not in self._waiting:
                return
            data = {**data, "id": self._waiting.pop(purpose)}
        self._dialogue.feed(json.dumps(data).encode() + b"\n")
        self._settle()

    def _said(self, line: Line) -> None:
        method = _method(line)
        if method == "session/prompt":
            self._prompt(line.data)
        elif method == "session/cancel":
            self._dialogue.interrupt("interrupted")
        elif method is None:
            self._answer(line.data)
        self._settle()
        if method is not None and "id" in line.data:
            self._recorded[line.data["id"]] = _purpose(method)

    def _prompt(self, data: dict[str, Any]) -> None:
        if self._dialogue.guard.turn_id is None:
            self._turns += 1
            parts = (TextPart(text=str(data["params"]["prompt"][0].get("text", ""))),)
            self._dialogue.prompt(Prompt(prompt_id=f"prm_{self._turns}", turn_id=f"trn_{self._turns}", parts=parts))

    def _answer(self, data: dict[str, Any]) -> None:
        """Say what the recorder said, if it was asked for something that we ask people for."""
        result = data.get("result") or {}
        cancelled = result.get("outcome", {}).get("outcome") == "cancelled"
        if self._dialogue.guard.open_asks and not cancelled:
            self._dialogue.answer(_decision(self._dialogue.guard.open_asks[0], result))

    def _settle(self) -> None:
        for frame in self._dialogue.take_sends():
            message = msgspec.json.decode(frame)
            self.sent.append(message)
            if "method" in message and "id" in message and not self._granted(message):
                self._waiting[_purpose(message["method"])] = message["id"]
        self.drafts += self._dialogue.take_drafts()

    def _granted(self, message: dict[str, Any]) -> bool:
        """Answer what only we ask for."""
        again = message["method"] == "session/new" and any(sent.get("method") in OPENINGS for sent in self.sent[:-1])
        if message["method"] not in GRANTED and not again:
            return False
        result = {"sessionId": "session-again"} if again else {}
        frame = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self._dialogue.feed(json.dumps(frame).encode() + b"\n")
        self._settle()
        return True


def _method(line: Line) -> str | None:
    method = line.data.get("method") if line.dir == "in" else None
    return str(method) if method else None


def _purpose(method: str) -> str:
    return "opening" if method in OPENINGS else method


def _decision(ask: PermissionData | QuestionData, result: dict[str, Any]) -> Answer:
    if isinstance(ask, PermissionData):
        option = str(result.get("outcome", {}).get("optionId", ""))
        refused = ("reject", "cancel", "abort", "deny", "no")
        return PermissionAnswer(ask_id=ask.permission_id, allow=not option.startswith(refused))
    given = result.get("answers") or result.get("content") or {}
    picked = str(next(iter(given.values()), ""))
    return QuestionAnswer(ask_id=ask.question_id, answers=((picked,),) if picked else None)


# What came out, in short


def short(drafts: list[Draft]) -> list[tuple[str, str]]:
    """Each event as its type and what matters of it; usage, titles and growth of items are left out."""
    quiet = {"usage.updated", "item.delta", "session.info"}
    return [(draft.type, _essence(draft)) for draft in drafts if draft.type not in quiet]


def _essence(draft: Draft) -> str:
    data: Any = draft.data
    match draft.type:
        case "item.started" | "item.completed":
            said = " ".join(_part(part) for part in data.item.content)
            return f"{data.item.kind} {data.item.status}" + (f" {said}" if said else "")
        case "permission.requested" | "permission.resolved":
            return f"{data.status} {data.action}"
        case "question.requested" | "question.resolved":
            return f"{data.status} {data.prompt} {'/'.join(data.options)}"
        case "turn.ended":
            return f"{data.outcome} {data.stop_reason}"
        case "file.changed" | "artifact.created":
            return f"{data.action} {data.path.rpartition('/')[2]}"
        case "terminal.output":
            return str(data.data)
        case _:
            return f"{data.code} {data.message}"


def _part(part: Any) -> str:
    if part.type == "tool_call":
        return f"{part.name}({part.arguments})"
    return str(part.output if part.type == "tool_result" else part.text)
