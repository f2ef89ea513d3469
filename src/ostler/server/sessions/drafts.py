"""Events that the server itself writes."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ostler.base.errors import OstlerError
from ostler.server.sessions.log.titles import in_one_line
from ostler.server.sessions.settings import SessionChange
from ostler.wire.events import (
    ErrorData,
    ItemCompletedData,
    ItemStartedData,
    LogData,
    NoticeData,
    PermissionData,
    PermissionStatus,
    QuestionData,
    SessionEndedData,
    SessionInfoData,
    SessionStartedData,
    SessionStatus,
    SessionStatusData,
    TurnEndedData,
    TurnOutcome,
    TurnStartedData,
)
from ostler.wire.fleets import ReportedData
from ostler.wire.items import Item, QueueEntry, QueueUpdatedData, StderrOutput
from ostler.wire.parts import PromptPart
from ostler.wire.running import Draft
from ostler.wire.sessions import Ask
from ostler.wire.workspace_events import (
    Comment,
    CommentUpdatedData,
    DeliveryCompletedData,
    PullRequestData,
    SessionForkedData,
    SessionHandoffData,
    SessionLimitData,
    SessionMovedData,
    SessionRewoundData,
    SnapshotCreatedData,
    WorkspaceCreatedData,
    WorkspaceRemovedData,
    WorkspaceRestoredData,
)


def _draft(kind: str, data: object) -> Draft:
    return Draft(kind, data, source="daemon", synthetic=True)  # type: ignore[arg-type]  # every caller gives a struct


def started(metadata: dict[str, object]) -> Draft:
    """The session exists."""
    return _draft("session.started", SessionStartedData(metadata=metadata))


def status(value: SessionStatus, reason: str | None = None) -> Draft:
    """The status changed."""
    return _draft("session.status", SessionStatusData(status=value, reason=reason))


def info(
    *,
    title: str | None = None,
    title_chosen: bool = False,
    labels: dict[str, str] | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
) -> Draft:
    """What people call a session, or where they want to see it, changed."""
    chosen = True if title_chosen and title is not None else None
    title = in_one_line(title) if title is not None else None
    data = SessionInfoData(title=title, title_chosen=chosen, labels=labels, pinned=pinned, archived=archived)
    return _draft("session.info", data)


def native(session: str) -> Draft:
    """What the agent calls the conversation, so that it goes on with it."""
    return _draft("session.info", SessionInfoData(native_session_id=session))


def item(done: Item) -> list[Draft]:
    """An entry of the transcript that is complete from the first."""
    begun = msgspec.structs.replace(done, status="in_progress")
    return [
        _draft("item.started", ItemStartedData(item=begun)),
        _draft("item.completed", ItemCompletedData(item=done)),
    ]


def settings(chosen: SessionChange) -> Draft:
    """Somebody chose how the agent should work."""
    named = {name: getattr(chosen, name) for name in ("model", "mode", "variant", "permission_mode")}
    return _draft("session.info", SessionInfoData(**named))


def line(message: str) -> Draft:
    """A line for operators."""
    return _draft("log", LogData(level="info", message=message))


def on_runner(message: str, placement: Literal["queued", "placed", "lost", "back"]) -> Draft:
    """A line about the runner of a session, which waits for one, has one, or cannot reach it."""
    return _draft("log", LogData(level="info", message=message, fields={"placement": placement}))


def placed(runner: str) -> Draft:
    """The session has a runner."""
    return on_runner(f"Placed on the runner '{runner}'.", "placed")


def workspace(data: WorkspaceCreatedData) -> Draft:
    """The session has files of its own."""
    return _draft("workspace.created", data)


def snapshot(data: SnapshotCreatedData) -> Draft:
    """The state of the files was kept."""
    return _draft("snapshot.created", data)


def delivery(data: DeliveryCompletedData) -> Draft:
    """The result was handed over."""
    return _draft("delivery.completed", data)


def pull_request(data: PullRequestData) -> Draft:
    """Something became of the pull request."""
    return _draft("delivery.updated", data)


def rewound(data: SessionRewoundData) -> Draft:
    """The session went back."""
    return _draft("session.rewound", data)


def restored(data: WorkspaceRestoredData) -> Draft:
    """The files are what they were."""
    return _draft("workspace.restored", data)


def removed(data: WorkspaceRemovedData) -> Draft:
    """The files are not kept any longer."""
    return _draft("workspace.removed", data)


def forked(data: SessionForkedData) -> Draft:
    """The session was made from another one."""
    return _draft("session.forked", data)


def moved(data: SessionMovedData) -> Draft:
    """The session is on another runner."""
    return _draft("session.moved", data)


def handoff(data: SessionHandoffData) -> Draft:
    """Another agent takes the next turn."""
    return _draft("session.handoff", data)


def limit(data: SessionLimitData) -> Draft:
    """A limit was reached, is waited for no longer, or is over."""
    return _draft("session.limit", data)


def comment(data: Comment, *, removed: bool = False) -> Draft:
    """A comment on the files is new, has changed, was sent or is removed."""
    return _draft("comment.updated", CommentUpdatedData(comment=data, removed=removed))


def reported(kind: str, data: ReportedData, time: str | None) -> Draft:
    """A leader told of its followers."""
    draft = _draft(kind, data)
    draft.time = time
    return draft


def completed() -> list[Draft]:
    """The session did what it was made for."""
    data = SessionEndedData(reason="completed", terminated_by="daemon")
    return [status("completed"), _draft("session.ended", data)]


def failed(error: OstlerError) -> list[Draft]:
    """The session cannot do what it was made for."""
    data = SessionEndedData(reason="error", terminated_by="daemon", message=str(error))
    return [error_of(error), status("failed", str(error)), _draft("session.ended", data)]


def ended_by_us() -> Draft:
    """The session was stopped or cancelled."""
    return _draft("session.ended", SessionEndedData(reason="terminated", terminated_by="daemon"))


def ended_by_error(error: OstlerError) -> Draft:
    """The agent never came up."""
    data = SessionEndedData(
        reason="error",
        terminated_by="agent",
        message=str(error),
        exit_code=error.fields.get("exit_code"),
        stderr=_stderr(error),
    )
    return _draft("session.ended", data)


def _stderr(error: OstlerError) -> StderrOutput | None:
    found = error.fields.get("stderr")
    return StderrOutput(**found) if found else None


def error_of(error: OstlerError) -> Draft:
    """Something went wrong on our side of the agent."""
    shown = {
        name: error.fields[name] for name in ("exit_code", "signal", "stderr") if error.fields.get(name) is not None
    }
    return _draft("error", ErrorData(message=str(error), code=error.code, details=shown or None))


def warning(message: str, code: str) -> Draft:
    """Something the people in the session should know."""
    return _draft("notice", NoticeData(severity="warning", message=message, code=code))


def remark(message: str, code: str) -> Draft:
    """Something that the people in the session may like to know."""
    return _draft("notice", NoticeData(severity="info", message=message, code=code))


def restarted() -> Draft:
    """Somebody ended the agent's process."""
    message = "The agent was restarted. It goes on with its memory in the next turn."
    return _draft("notice", NoticeData(severity="info", message=message, code="agent_restarted"))


def turn_started(turn_id: str, trace_id: str) -> Draft:
    """A prompt was accepted."""
    return _draft("turn.started", TurnStartedData(phase="started", turn_id=turn_id, trace_id=trace_id))


def turn_ended(turn_id: str, outcome: TurnOutcome, stop_reason: str) -> Draft:
    """A turn ended without the agent's help."""
    data = TurnEndedData(phase="ended", turn_id=turn_id, outcome=outcome, stop_reason=stop_reason)
    return _draft("turn.ended", data)


def user_message(prompt_id: str, parts: Sequence[PromptPart]) -> list[Draft]:
    """The transcript entry of a prompt."""
    open_item = Item(
        item_id=f"itm_{prompt_id}", kind="message", role="user", status="in_progress", content=tuple(parts)
    )
    done_item = Item(item_id=f"itm_{prompt_id}", kind="message", role="user", status="completed", content=tuple(parts))
    return [
        _draft("item.started", ItemStartedData(item=open_item)),
        _draft("item.completed", ItemCompletedData(item=done_item)),
    ]


def item_failed(item: Item) -> Draft:
    """An item that nobody will finish."""
    failed = Item(
        item_id=item.item_id,
        native_item_id=item.native_item_id,
        parent_id=item.parent_id,
        kind=item.kind,
        role=item.role,
        status="failed",
        content=item.content,
    )
    return _draft("item.completed", ItemCompletedData(item=failed))


def queue(entries: Sequence[QueueEntry]) -> Draft:
    """The queue changed."""
    return _draft("queue.updated", QueueUpdatedData(entries=tuple(entries)))


def proposed(ask_id: str, action: str, metadata: dict[str, object]) -> Draft:
    """Something waits for a person's yes that no agent's process waits for."""
    data = PermissionData(permission_id=ask_id, action=action, status="requested", tool="propose", metadata=metadata)
    return _draft("permission.requested", data)


def permission_resolved(asked: PermissionData, outcome: PermissionStatus, message: str | None, by: str) -> Draft:
    """A permission was decided."""
    data = PermissionData(
        permission_id=asked.permission_id,
        action=asked.action,
        status=outcome,
        tool=asked.tool,
        item_id=asked.item_id,
        message=message,
        metadata={**(asked.metadata or {}), "resolved_by": by},
    )
    return _draft("permission.resolved", data)


def question_resolved(
    asked: QuestionData, answers: tuple[tuple[str, ...], ...] | None, by: str, message: str | None = None
) -> Draft:
    """A question was answered, or rejected when there are no answers."""
    data = QuestionData(
        question_id=asked.question_id,
        prompt=asked.prompt,
        options=asked.options,
        status="rejected" if answers is None else "answered",
        response=", ".join(answers[0]) if answers else None,
        questions=asked.questions,
        answers=answers,
        item_id=asked.item_id,
        message=message,
        metadata={**(asked.metadata or {}), "resolved_by": by},
    )
    return _draft("question.resolved", data)


def asks_dropped(asks: Iterable[Ask], by: str) -> list[Draft]:
    """That nobody needs to answer what is open."""
    return [_ask_dropped(ask, by) for ask in asks]


def _ask_dropped(ask: Ask, by: str) -> Draft:
    """An open ask that nobody can answer any more."""
    if ask.permission is not None:
        return permission_resolved(ask.permission, "reject", None, by)
    if ask.question is not None:
        return question_resolved(ask.question, None, by)
    raise ValueError(f"ask {ask.ask_id} has neither permission nor question")
