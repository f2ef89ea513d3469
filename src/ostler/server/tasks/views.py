"""How stored sessions look on the wire."""

import msgspec

from ostler.base.casing import shown_as
from ostler.server.sessions.log.state import SessionState, is_waited_for
from ostler.server.sessions.settings import settings_shown
from ostler.server.store.records import SessionRecord
from ostler.wire.runners import Placement, SessionRunner
from ostler.wire.sessions import Session, UsageView
from ostler.wire.tasks import (
    Delivered,
    SessionAgent,
    TaskCreated,
    TaskLinks,
    TaskPart,
    TaskResources,
    TaskRuntimeView,
    TaskVcs,
    TaskWebhookSecret,
    TaskWorkspaceView,
)
from ostler.wire.workspaces import SnapshotProvider


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


def task_created(
    record: SessionRecord, state: SessionState, webhooks: tuple[TaskWebhookSecret, ...] = ()
) -> TaskCreated:
    """The answer to a new task."""
    return TaskCreated(id=record.id, status=state.status, links=links_of(record.id), webhooks=webhooks)


def session_view(record: SessionRecord, state: SessionState, last: int, updated_at: str) -> Session:
    """A session as clients see it, whoever started it, without its process; values of env never leave the server."""
    settings, task = settings_shown(record, state), record.task
    return Session(
        id=record.id,
        key=record.key,
        tenant_id=record.tenant,
        project_id=(task.project_id if task is not None else None) or record.project,
        agent=_agent(record, state),
        status=state.status,
        activity=state.activity,
        permission_mode=settings.permission_mode,
        permission_rules=settings.permission_rules,
        cwd=settings.cwd if state.workspace is None or record.is_in_place else state.workspace.path,
        labels=state.labels,
        env_names=tuple(sorted(settings.env)),
        mcp_servers=tuple(sorted(settings.mcp_servers)),
        created_at=record.created_at,
        updated_at=updated_at,
        last_sequence=last,
        turn_count=state.turn_count,
        turns_left_behind=sum(last - first + 1 for first, last in state.left_behind),
        queue_length=len(state.queue),
        open_asks=len(state.asks),
        runtime=_runtime(record),
        vcs=_vcs(record, state),
        links=_links(record),
        placement=_placement(record, state),
        runner=SessionRunner(id=record.runner, name=record.runner_name) if record.runner is not None else None,
        pinned=state.pinned,
        archived=state.archived,
        handoff=state.handoff.to_agent if state.handoff is not None else None,
        title=state.title,
        model=settings.model,
        variant=settings.variant,
        mode=settings.mode,
        instructions=settings.instructions,
        system_prompt=settings.system_prompt,
        code_tools=tuple(sorted(tool.name for tool in settings.code_tools)),
        provider=f"{provider.type} at {provider.base_url}" if (provider := settings.provider) else None,
        turn_id=state.turn.turn_id if state.turn else None,
        turn_started_at=state.turn.started_at if state.turn else None,
        last_turn_outcome=state.last_turn.outcome if state.last_turn else None,
        last_turn_reason=state.last_turn.stop_reason if state.last_turn else None,
        native_session_id=state.native_session_id,
        started_at=state.started_at,
        ended_at=state.ended_at,
        error=state.error,
        limited_until=limit.until if (limit := state.limit) and limit.status == "reached" else None,
        waits_for_limit=is_waited_for(state.limit),
        workspace_id=state.workspace_id,
        forked_from=state.forked_from,
        usage=shown_as(UsageView, state.usage),
        changes=state.changes,
        delivery=delivery_view(state),
        task=TaskPart(prompt=task.prompt, labels=state.labels) if task is not None else None,
        workspace=_workspace(record, state),
    )


def delivery_view(state: SessionState) -> Delivered | None:
    """The last delivery, and whether it is still what there is."""
    shown = shown_as(Delivered, state.delivery)
    return shown and msgspec.structs.replace(shown, outdated=state.is_delivery_outdated)


def _placement(record: SessionRecord, state: SessionState) -> Placement:
    if record.runner is not None:
        return Placement(state="placed")
    if state.ended:
        return Placement(state="none", reason="it was over before it had a runner")
    return Placement(state="queued")


def _agent(record: SessionRecord, state: SessionState) -> SessionAgent:
    task = record.task
    version = task.agent_version if task is not None else None
    return SessionAgent(type=record.agent, version=version, model=settings_shown(record, state).model)


def _links(record: SessionRecord) -> dict[str, str]:
    place = f"/api/v1/sessions/{record.id}"
    links = {"self": place, "stream": f"{place}/events/sse"}
    links |= {name: f"{place}/{name}" for name in ("events", "messages", "logs")}
    if record.order is not None:
        links |= {name: f"{place}/{name}" for name in ("workspace", "diff", "patch")}
        links["ide"] = f"{place}/open/ide"
    return links


def _runtime(record: SessionRecord) -> TaskRuntimeView:
    order = record.order
    if order is None:
        return TaskRuntimeView(type="local", labels=record.needs.labels)
    given = order.runtime.resources
    return TaskRuntimeView(
        type=order.runtime.type,
        devcontainer_path=order.runtime.devcontainer_path,
        resources=TaskResources(cpu=given.cpu, memory_mib=given.memory_mib) if given is not None else None,
        labels=record.needs.labels,
    )


def _vcs(record: SessionRecord, state: SessionState) -> TaskVcs:
    order, made, task = record.order, state.workspace, record.task
    delivery = task.delivery if task is not None else None
    return TaskVcs(
        repo_mode=order.repo.mode if order is not None else "none",
        url=made.url if made is not None else order.repo.url if order is not None else None,
        path=order.repo.path if order is not None else None,
        branch=made.branch if made is not None else None,
        commit=made.commit if made is not None else None,
        delivery=delivery.mode if delivery is not None else None,
        target_branch=delivery.target_branch if delivery is not None else None,
    )


def _workspace(record: SessionRecord, state: SessionState) -> TaskWorkspaceView | None:
    made = state.workspace
    if made is None or state.removed is not None:
        return None
    provider: SnapshotProvider = made.provider  # type: ignore[assignment]  # the log keeps it as plain text
    return TaskWorkspaceView(provider=provider, mount_path=made.path, host=record.runner_name)
