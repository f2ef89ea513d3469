"""The log as session updates of ACP's second version, where it differs from the first."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.updates import KINDS, AcpUpdates
from ostler.server.dialects.formats import Subject
from ostler.wire.events import (
    AnyEvent,
    FileChanged,
    Notice,
    PermissionData,
    PermissionRequested,
    PermissionResolved,
    QuestionData,
    QuestionRequested,
    QuestionResolved,
    TurnEnded,
    TurnEndedData,
    TurnStarted,
    UnknownEvent,
)

SECOND_KINDS = KINDS - {"tool_call", "plan", "current_mode_update"} | {"plan_update", "state_update", "notice"}
_STOP_REASONS = {"end_turn", "max_tokens", "max_turn_requests", "refusal"}
_HUNK = re.compile(r"^@@ ", re.MULTILINE)
_QUOTED = re.compile(r'[^ -~]|["\\]')
"""Git writes such a path another way."""


class SecondAcpUpdates:
    """Fed every event in order; gives session updates as plain data."""

    def __init__(self, subject: Subject) -> None:
        self._first = AcpUpdates(subject)
        self._cwd = subject.cwd
        self._changes: dict[tuple[str, str], Json] = {}
        self._patches: dict[str, str] = {}
        self._asks: set[str] = set()

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        if isinstance(event, FileChanged):
            self._note(event)
        updates = [found for update in self._first.feed(event) if (found := self._reworded(update)) is not None]
        more = {"_meta": {"ostler": {"sequence": event.sequence}}}
        own = [{**update, **more} for update in self._own(event)]
        return [*own, *updates] if isinstance(event, TurnStarted) else [*updates, *own]

    def _note(self, event: FileChanged) -> None:
        path = str(PurePosixPath(self._cwd) / event.data.path)
        call = event.data.item_id or ""
        operation = {"created": "add", "deleted": "delete"}.get(event.data.action, "modify")
        self._changes[call, path] = {"operation": operation, "path": path}
        self._patches[call] = self._patches.get(call, "") + _section(path, operation, event.data.diff or "")

    def _reworded(self, update: Json) -> Json | None:
        match update["sessionUpdate"]:
            case "tool_call" | "tool_call_update":
                if "content" not in update:
                    return {**update, "sessionUpdate": "tool_call_update"}
                content = self._content(update["toolCallId"], update["content"])
                return {**update, "sessionUpdate": "tool_call_update", "content": content}
            case "plan":
                plan = {"type": "items", "planId": "plan", "entries": update["entries"]}
                return {"sessionUpdate": "plan_update", "plan": plan, "_meta": update["_meta"]}
            case "current_mode_update":
                return None  # a mode is an option there, and those are told all together
            case _:
                return update

    def _content(self, call: str, content: Sequence[Json]) -> list[Json]:
        """A diff there says what became of which file, and all of the text in one patch."""
        paths = dict.fromkeys(block["path"] for block in content if block["type"] == "diff")
        changes = [change for path in paths if (change := self._changes.get((call, path))) is not None]
        rest = [block for block in content if block["type"] != "diff"]
        text = self._patches.get(call)
        patch = {"patch": {"format": "git_patch", "text": text}} if text else {}
        return [{"type": "diff", "changes": changes, **patch}, *rest] if changes else rest

    def _own(self, event: AnyEvent | UnknownEvent) -> list[Json]:
        match event:
            case TurnStarted():
                self._changes, self._patches, self._asks = {}, {}, set()
                return [_state("running")]
            case TurnEnded(data=data):
                return [_state("idle", **_stopped(data))]
            case PermissionRequested() | QuestionRequested() | PermissionResolved() | QuestionResolved():
                return self._asked(event)
            case Notice(data=notice):
                title = notice.message or notice.code or notice.severity
                return [{"sessionUpdate": "notice", "severity": notice.severity, "title": title}]
            case _:
                return []

    def _asked(
        self, event: PermissionRequested | QuestionRequested | PermissionResolved | QuestionResolved
    ) -> list[Json]:
        match event.data:
            case PermissionData(permission_id=name) | QuestionData(question_id=name):
                pass
        if isinstance(event, PermissionRequested | QuestionRequested):
            self._asks.add(name)
            return [_state("requires_action")]
        self._asks.discard(name)
        return [] if self._asks else [_state("running")]


def _state(state: str, **more: str) -> Json:
    return {"sessionUpdate": "state_update", "state": state, **more}


def _stopped(end: TurnEndedData) -> dict[str, str]:
    match end.outcome:
        case "completed":
            return {"stopReason": end.stop_reason if end.stop_reason in _STOP_REASONS else "end_turn"}
        case "interrupted":
            return {"stopReason": "cancelled"}
        case "failed":
            return {"stopReason": "error"}


def _section(path: str, operation: str, diff: str) -> str:
    """The part of a patch of git that is about one file; nothing if there is no text that could be shown."""
    first = _HUNK.search(diff)
    if first is None or _QUOTED.search(path):
        return ""
    mode = {"add": "new file mode 100644\n", "delete": "deleted file mode 100644\n"}.get(operation, "")
    old, new = "/dev/null" if operation == "add" else path, "/dev/null" if operation == "delete" else path
    hunks = diff[first.start() :]
    return f"diff --git {path} {path}\n{mode}--- {old}\n+++ {new}\n{hunks}" + ("" if hunks.endswith("\n") else "\n")
