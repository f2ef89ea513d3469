"""Bursts as the log of a session makes them, without a session."""

import asyncio
from typing import Any

import msgspec

from ostler.server.store.bursts import mark_of
from ostler.server.store.protocol import Store
from ostler.server.store.records import Append, AppendResult, NewSession, SessionSpec, StateChange
from ostler.wire.events import (
    EVENTS,
    ItemCompletedData,
    ItemStartedData,
    NoticeData,
    SessionStatus,
)
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import TextPart
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.tasks import TaskSpec, TaskWebhook
from ostler.wire.workspace_events import ArtifactCreatedData, SessionRewoundData

NOW = "2026-11-16T12:00:00.000Z"
SPEC = SessionSpec(cwd="/", env={}, permission_mode="default")
TASK = TaskSpec(
    prompt="do it",
    project_id="website",
    tenant_id="acme",
    webhooks=(
        TaskWebhook(event="session.ended", url="https://a.example"),
        TaskWebhook(event="session.ended", url="https://b.example"),
    ),
)
Happened = tuple[str, Any]
"""The type of an event, and its data."""


def notice(text: str) -> Happened:
    return "notice", NoticeData(severity="info", message=text)


def started(item_id: str) -> Happened:
    return "item.started", ItemStartedData(item=_item(item_id, "", "in_progress"))


def said(item_id: str, text: str) -> Happened:
    return "item.completed", ItemCompletedData(item=_item(item_id, text, "completed"))


def made(path: str) -> Happened:
    return "artifact.created", ArtifactCreatedData(path=path, action="write", artifact_type="text")


def rewound(sequence: int) -> Happened:
    data = SessionRewoundData(turn=0, sequence=sequence, snapshot_id="snp_1", workspace_id="wsp_1")
    return "session.rewound", data


def _item(item_id: str, text: str, status: ItemStatus) -> Item:
    return Item(item_id=item_id, kind="message", status=status, content=(TextPart(text=text),), role="assistant")


def change(status: SessionStatus = "running", **more: Any) -> StateChange:
    values = {"title": None, "labels": {}, "updated_at": NOW, "state": b"{}", **more}
    return StateChange(status=status, **values)


class Writing:
    """Numbers the events of one session, and appends them in the epoch that it was given."""

    def __init__(self, store: Store, session_id: str, epoch: int = 1) -> None:
        self.id = session_id
        self.epoch = epoch
        self.last = 0
        self.store = store

    def burst(self, *happened: Happened, **more: Any) -> Append:
        """The next events, not yet appended; a new session needs a change."""
        first = self.last + 1
        events = [self._event(number, *one) for number, one in enumerate(happened, first)]
        marks = [
            mark_of(number, kind, data, event, None)
            for number, event, (kind, data) in zip(range(first, first + len(events)), events, happened, strict=True)
        ]
        self.last += len(events)
        values = {"raws": (None,) * len(events), "change": None, **more}
        return Append(
            session_id=self.id,
            epoch=self.epoch,
            time=NOW,
            first=first,
            events=tuple(events),
            marks=tuple(mark for mark in marks if mark is not None),
            **values,
        )

    def append(self, *happened: Happened, **more: Any) -> "asyncio.Future[AppendResult]":
        return self.store.append(self.burst(*happened, **more))

    def create(
        self,
        key: str | None = None,
        *,
        project: str = "default",
        agent: str = "mock",
        task: TaskSpec | None = None,
        first: StateChange | None = None,
        runner: str | None = "run_1",
        owner: str = "server",
        workspace: WorkspaceOrder | None = None,
    ) -> "asyncio.Future[AppendResult]":
        """With one event."""
        new = NewSession(
            id=self.id,
            project=project,
            key=key or self.id,
            agent=agent,
            created_at=NOW,
            spec=msgspec.structs.replace(SPEC, task=task, workspace=workspace),
            runner=runner,
        )
        return self.store.create_session(new, self.burst(notice("created"), change=first or change()), owner)

    def _event(self, number: int, kind: str, data: Any) -> bytes:
        event = EVENTS[
            kind
        ](  # type: ignore[call-arg]  # each event class adds its own `data`
            event_id=f"evt_{self.id[4:]}_{number}",
            sequence=number,
            time=NOW,
            session_id=self.id,
            source="agent",
            synthetic=False,
            data=data,
        )
        return msgspec.json.encode(event)


async def created(store: Store, session_id: str, **more: Any) -> Writing:
    """A new session."""
    writing = Writing(store, session_id)
    await writing.create(**more)
    return writing


async def sequences(store: Store, session_id: str) -> list[int]:
    """The numbers of all events of a session."""
    return [event.number for event in await store.logs.events(session_id, 0, 10_000, raw=False, max_bytes=2**30)]
