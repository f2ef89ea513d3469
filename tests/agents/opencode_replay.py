"""Plays recordings of OpenCode's server back to the translator, through the same dialogue the runner uses."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.agents.opencode import OpenCodeAdapter
from ostler.agents.opencode.translator import OpenCodeTranslator
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.support.recorded import Line, Recording

DEFAULTS: dict[str, Any] = {
    "session_id": "ses_1",
    "agent": "opencode",
    "start": 1,
    "cwd": "/workspaces/one",
    "home": "/home/agent",
    "env": {},
    "permission_mode": "default",
}


def spec_with(**fields: Any) -> AgentSpec:
    """What a session starts the agent with."""
    return AgentSpec(**{**DEFAULTS, **fields})


class Replay:
    """One dialogue; requests of the recording become what a session would have asked for."""

    def __init__(self, **fields: Any) -> None:
        self.counts = Counts()
        self.drafts: list[Draft] = []
        self.sent: list[dict[str, Any]] = []
        translator: OpenCodeTranslator = OpenCodeAdapter().translator(spec_with(**fields))
        self.dialogue = Dialogue(translator, start=1, max_frame_bytes=2**20, counts=self.counts)
        self._open: dict[str, int] = {}
        self._prompts = 0
        self.dialogue.open()
        self._collect()

    def _collect(self) -> None:
        self.drafts += self.dialogue.take_drafts()
        for frame in self.dialogue.take_sends():
            request = json.loads(frame)
            self.sent.append(request)
            self._open[request["path"].partition("?")[0]] = request["id"]

    def frame(self, frame: dict[str, Any]) -> None:
        """One frame of the channel."""
        self.dialogue.feed(json.dumps(frame).encode() + b"\n")
        self._collect()

    def event(self, kind: str, **properties: Any) -> None:
        """One event of the server."""
        self.frame({"event": {"id": "evt_1", "type": kind, "properties": properties}})

    def respond(self, path: str, status: int, body: Any) -> None:
        """The response to the open request of that path, if we made one."""
        if (request_id := self._open.pop(path, None)) is not None:
            self.frame({"response": request_id, "status": status, "body": body})

    def prompt(self, text: str) -> None:
        """Begin a turn, or add to the one under way."""
        self._prompts += 1
        prompt = Prompt(prompt_id=f"prm_{self._prompts}", turn_id=f"trn_{self._prompts}", parts=(TextPart(text=text),))
        if self.dialogue.guard.turn_id is None:
            self.dialogue.prompt(prompt)
        else:
            self.dialogue.steer(prompt)
        self._collect()

    def interrupt(self) -> None:
        """End the turn."""
        self.dialogue.interrupt("interrupted")
        self._collect()

    def answer(self, path: str, body: dict[str, Any]) -> None:
        """Decide the open ask."""
        _, kind, native, _ = path.split("/")
        if kind == "permission":
            decided = PermissionAnswer(ask_id=f"per_1_{native}", allow=body["reply"] != "reject")
            self.dialogue.answer(decided)
        else:
            self.dialogue.answer(QuestionAnswer(ask_id=f"que_1_{native}", answers=_plan_words(body["answers"])))
        self._collect()


def _plan_words(answers: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    words = {"Yes": "Approve", "No": "Reject"}
    return tuple(tuple(words.get(one, one) for one in chosen) for chosen in answers)


def replay(recording: Recording, **fields: Any) -> Replay:
    """A whole recording."""
    played = Replay(**fields)
    for line in recording.lines:
        _play(played, line)
    return played


def _play(played: Replay, line: Line) -> None:
    match line.dir, line.data:
        case "sse", event:
            played.frame({"event": event})
        case "http", {"status": status, "path": path, "body": body}:
            played.respond(path, status, body)
        case "http", {"path": path, "body": body}:
            _request(played, path, body)


def _request(played: Replay, path: str, body: Any) -> None:
    match path.rpartition("/")[2]:
        case "prompt_async":
            _be_ready(played, path.split("/")[2])
            played.prompt(body["parts"][0]["text"])
        case "abort":
            played.interrupt()
        case "reply":
            played.answer(path, body)


def _be_ready(played: Replay, session: str) -> None:
    """A recording of a resumed session has no handshake."""
    if played.dialogue.ready is None:
        played.respond(f"/session/{session}", 200, {"id": session, "version": "1.18.18"})


def short(drafts: Sequence[Draft]) -> list[str]:
    """The drafts as a person would tell them; deltas of one item in a row are told once."""
    told = [_short(draft) for draft in drafts]
    return [line for line, before in zip(told, ["", *told], strict=False) if line and line != before]


def _short(draft: Draft) -> str:
    data: Any = msgspec.to_builtins(draft.data)
    match draft.type:
        case "item.started" | "item.completed":
            item = data["item"]
            content = " ".join(_content(part) for part in item["content"])
            return f"{draft.type} {item['kind']} {item['status']} {content}".strip()
        case "item.delta":
            return f"item.delta {data['delta']['type']}"
        case "permission.requested" | "permission.resolved":
            return f"{draft.type} {data['action']} {data['status']}"
        case "question.requested" | "question.resolved":
            return f"{draft.type} {data['prompt']} {data['options']}"
        case "turn.ended":
            return f"turn.ended {data['outcome']}"
        case "error" | "notice":
            return f"{draft.type} {data['code']} {data['message']}"
        case "file.changed":
            return f"file.changed {data['action']} {data['path']}"
        case "terminal.output":
            return f"terminal.output {data['data']!r}"
        case "usage.updated":
            return ""
        case kind:
            return kind


def _content(part: dict[str, Any]) -> str:
    return str(part.get("text") or part.get("output") or f"{part['name']}{part['arguments']}")
