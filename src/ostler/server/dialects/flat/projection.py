"""The log as flat lines: what the session is, what its agent says and does, what was kept and handed over."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.base.casing import camel
from ostler.base.context import unwrapped
from ostler.server.dialects.formats import Subject
from ostler.wire.events import (
    AnyEvent,
    DeliveryCompleted,
    ErrorRaised,
    FenceResult,
    FenceStarted,
    FleetCatalog,
    FleetNote,
    FleetSummary,
    HostExited,
    HostLog,
    HostStarted,
    ItemCompleted,
    Log,
    Notice,
    PermissionData,
    PermissionRequested,
    PermissionResolved,
    QuestionData,
    QuestionRequested,
    QuestionResolved,
    SessionRewound,
    SessionStatusChanged,
    SnapshotCreated,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
)
from ostler.wire.fleets import INGESTED_TYPES, LEADER
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, StatusPart, TextPart, ToolCallPart, ToolResultPart

Json = dict[str, Any]
KINDS = frozenset({"status", "log", "moment", "delivery", *INGESTED_TYPES})
_LONGEST = 4000
"""Characters of one line; the transcript has all of it."""


class FlatProjection:
    """Fed every event in order; gives one line for each that an operator cares about."""

    def __init__(self, _: Subject) -> None:
        """Every line stands for itself, so nothing is remembered."""

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        line = line_of(event)
        return [] if line is None else [line]


def line_of(event: AnyEvent | UnknownEvent) -> Json | None:
    """The line of an event; None for one that has none."""
    line = LINES.get(type(event))
    return None if line is None else {**line(event), "ts": event.time}


def log_line_of(event: AnyEvent | UnknownEvent) -> Json | None:
    """The same in words, for a log that is nothing but lines."""
    line = line_of(event)
    if line is None or line["type"] == "log":
        return line
    return {**_log("info", _IN_WORDS[line["type"]](line)), "ts": event.time}


def _because(what: str, reason: str | None) -> str:
    return f"{what}: {reason}" if reason else what


def _log(level: str, message: str) -> Json:
    return {"type": "log", "level": level, "message": message}


def _status(event: SessionStatusChanged) -> Json:
    reason = {"reason": event.data.reason} if event.data.reason else {}
    return {"type": "status", "status": event.data.status, **reason}


def _moment(event: SnapshotCreated) -> Json:
    note = event.data.note or f"after turn {event.data.turn}"
    return {"type": "moment", "snapshotId": event.data.snapshot_id, "note": note}


def _delivery(event: DeliveryCompleted) -> Json:
    data = event.data
    more = {"branch": data.branch, "commit": data.commit, "targetBranch": data.target, "number": data.number}
    known = {name: value for name, value in more.items() if value is not None}
    return {"type": "delivery", "mode": data.mode, "url": data.url, **known}


def _delivered(line: Json) -> str:
    branch = f" of branch {line['branch']}" if line["mode"] == "pr" and "branch" in line else ""
    place = f" {line['branch']}" if line["mode"] == "branch" and "branch" in line else ""
    return f"delivered as {line['mode']}{place}{branch}" + (f": {line['url']}" if line["url"] else "")


def _item(event: ItemCompleted) -> Json:
    item = event.data.item
    spoken = "user: " if item.role == "user" else ""
    level = "error" if item.status == "failed" else "info"
    return _log(level, _cut(spoken + (_words(item) or f"{item.kind} without text")))


def _words(item: Item) -> str:
    return "\n".join(filter(None, map(_part, item.content)))


def _part(part: ContentPart) -> str:
    match part:
        case TextPart(text=text):
            return text if unwrapped(text) is None else ""
        case ToolCallPart(name=name, arguments=arguments):
            return f"tool {name}: {arguments}"
        case ToolResultPart(output=output):
            return f"result: {output}"
        case StatusPart(label=label, detail=detail):
            return _because(label, detail)
        case FileRefPart(path=path) | ImagePart(path=path):
            return f"file {path}"
        case _:
            return ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... (cut)"


def _permission(event: PermissionRequested | PermissionResolved) -> Json:
    data: PermissionData = event.data
    asked = data.status == "requested"
    line = f"asks for permission: {data.action}" if asked else f"permission {data.status}: {data.action}"
    return _log("warning" if asked else "info", _cut(line))


def _question(event: QuestionRequested | QuestionResolved) -> Json:
    data: QuestionData = event.data
    asked = data.status == "requested"
    line = f"asks: {data.prompt}" if asked else _because(f"question {data.status}", data.response)
    return _log("warning" if asked else "info", _cut(line))


def _reported(kind: str) -> Callable[[Any], Json]:
    """As the leader sent it."""

    def line(event: Any) -> Json:
        return {"type": kind, **_respelled(msgspec.to_builtins(event.data))}

    return line


def _respelled(value: Any) -> Any:
    if isinstance(value, list):
        return [_respelled(each) for each in value]
    if isinstance(value, dict):
        return {camel(name): _respelled(each) for name, each in value.items()}
    return value


def _catalog(event: FleetCatalog) -> Json:
    hosts = [{"name": host.name, "os": host.os, "tags": list(host.tags)} for host in event.data.hosts]
    return {**_reported("followersCatalog")(event), "hosts": hosts}


def _fence_started(event: FenceStarted) -> Json:
    return {"origin": LEADER, **_reported("fenceStarted")(event)}


def _fence_result(event: FenceResult) -> Json:
    hosts = {name: _respelled(msgspec.to_builtins(host)) for name, host in event.data.hosts.items()}
    return {**_reported("fenceResult")(event), "hosts": hosts}


def _fenced(line: Json) -> str:
    hosts = ", ".join(f"{name} {host['state']}" for name, host in line["hosts"].items())
    return _because(f"fence of {line['snapshotId']} is over", hosts)


_IN_WORDS: dict[str, Callable[[Json], str]] = {
    "status": lambda line: _because(f"session is {line['status']}", line.get("reason")),
    "moment": lambda line: f"snapshot {line['snapshotId']}: {line['note']}",
    "delivery": _delivered,
    "followersCatalog": lambda line: _because("followers", ", ".join(host["name"] for host in line["hosts"])),
    "fenceStarted": lambda line: f"fence of {line['snapshotId']} began",
    "fenceResult": _fenced,
    "hostStarted": lambda line: f"{line['host']}: began",
    "hostLog": lambda line: _cut(f"{line['host']}: {line['message']}"),
    "hostExited": lambda line: f"{line['host']}: ended with {line['code']}",
    "summary": lambda line: (
        f"passed: {', '.join(line['passed']) or 'none'}; failed: {', '.join(line['failed']) or 'none'}"
    ),
    "note": lambda line: _cut(line["message"]),
}
LINES: dict[type, Callable[[Any], Json]] = {
    SessionStatusChanged: _status,
    SnapshotCreated: _moment,
    DeliveryCompleted: _delivery,
    ItemCompleted: _item,
    PermissionRequested: _permission,
    PermissionResolved: _permission,
    QuestionRequested: _question,
    QuestionResolved: _question,
    Log: lambda event: _log(event.data.level, event.data.message),
    Notice: lambda event: _log(event.data.severity, event.data.message),
    ErrorRaised: lambda event: _log("error", event.data.message),
    TurnStarted: lambda event: _log("info", f"turn {event.data.turn_id} began"),
    TurnEnded: lambda event: _log("info", f"turn {event.data.turn_id} ended: {event.data.outcome}"),
    FleetCatalog: _catalog,
    FenceStarted: _fence_started,
    FenceResult: _fence_result,
    HostStarted: _reported("hostStarted"),
    HostLog: _reported("hostLog"),
    HostExited: _reported("hostExited"),
    FleetSummary: _reported("summary"),
    FleetNote: _reported("note"),
    SessionRewound: lambda event: _log("info", f"session is rewound to turn {event.data.turn}"),
}
