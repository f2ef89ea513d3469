"""Sessions as the tasks API shows them."""

import msgspec

from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.settings import settings_shown
from ostler.server.store.records import SessionRecord
from ostler.wire.tasks import (
    Delivered,
    TaskAgentView,
    TaskCreated,
    TaskLinks,
    TaskPart,
    TaskResources,
    TaskRuntimeView,
    TaskSession,
    TaskVcs,
    TaskWorkspaceView,
)
from ostler.wire.workspaces import SnapshotProvider

RUNNER = "local"
"""The name of the one runner that is part of the server."""
DEFAULT_TENANT = "default"


def links_of(session_id: str) -> TaskLinks:
    """Where to look for what."""
    place = f"/api/v1/sessions/{session_id}"
    return TaskLinks(
        self=place,
        events=f"{place}/events?format=flat",
        logs=f"{place}/logs",
        workspace=f"{place}/workspace",
        diff=f"{place}/diff",
        patch=f"{place}/patch",
        ide=f"{place}/open/ide",
    )


def task_created(record: SessionRecord, state: SessionState) -> TaskCreated:
    """The answer to a new task."""
    return TaskCreated(id=record.id, status=state.status, links=links_of(record.id))


def task_session(record: SessionRecord, state: SessionState) -> TaskSession:
    """A session with its task."""
    task = record.task
    version = task.agent_version if task is not None else None
    return TaskSession(
        id=record.id,
        tenant_id=(task.tenant_id if task is not None else None) or DEFAULT_TENANT,
        project_id=(task.project_id if task is not None else None) or record.project,
        task=TaskPart(prompt=task.prompt if task is not None else "", labels=state.labels),
        agent=TaskAgentView(type=record.agent, version=version, model=settings_shown(record, state).model),
        runtime=_runtime(record),
        vcs=_vcs(record, state),
        status=state.status,
        links=links_of(record.id),
        started_at=record.created_at,
        workspace=_workspace(state),
        ended_at=state.ended_at,
        error=state.error,
    )


def _runtime(record: SessionRecord) -> TaskRuntimeView:
    order = record.order
    if order is None:
        return TaskRuntimeView(type="local")
    given = order.runtime.resources
    return TaskRuntimeView(
        type=order.runtime.type,
        devcontainer_path=order.runtime.devcontainer_path,
        resources=TaskResources(cpu=given.cpu, memory_mib=given.memory_mib) if given is not None else None,
    )


def _vcs(record: SessionRecord, state: SessionState) -> TaskVcs:
    order, made, task = record.order, state.workspace, record.task
    delivery = task.delivery if task is not None else None
    return TaskVcs(
        repo_mode=order.repo.mode if order is not None else "none",
        url=made.url if made is not None else None,
        branch=made.branch if made is not None else None,
        commit=made.commit if made is not None else None,
        delivery=delivery.mode if delivery is not None else None,
        target_branch=delivery.target_branch if delivery is not None else None,
        delivered=msgspec.convert(state.delivery, Delivered, from_attributes=True) if state.delivery else None,
    )


def _workspace(state: SessionState) -> TaskWorkspaceView | None:
    made = state.workspace
    if made is None or state.removed is not None:
        return None
    provider: SnapshotProvider = made.provider  # type: ignore[assignment]  # the log keeps it as plain text
    return TaskWorkspaceView(provider=provider, mount_path=made.path, host=RUNNER)
