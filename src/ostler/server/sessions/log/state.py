"""What a session's log adds up to: a pure fold over events."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ostler.server.sessions.log import fleet, folds
from ostler.server.sessions.log.fleet import FleetState
from ostler.server.sessions.log.folds import Happened
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.wire.events import (
    ErrorData,
    FileChangedData,
    PermissionData,
    PermissionMode,
    QuestionData,
    SessionInfoData,
    SessionStatus,
    SessionStatusData,
    TurnEndedData,
    TurnStartedData,
    UsageUpdatedData,
)
from ostler.wire.items import QueueEntry, QueueUpdatedData
from ostler.wire.sessions import MOST_COUNTED_FILES, Activity, Ask, SessionChanges, SessionUsage, Turn
from ostler.wire.workspace_events import (
    Comment,
    DeliveryCompletedData,
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


class Stand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The snapshot that the files of a session are as, but for the turn under way."""

    snapshot_id: str
    turn: int
    tree: str | None = None


class SessionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything about a session that its events decide."""

    status: SessionStatus = "queued"
    turn: Turn | None = None
    """The turn under way."""
    turn_count: int = 0
    asks: tuple[Ask, ...] = ()
    """Only the open ones."""
    queue: tuple[QueueEntry, ...] = ()
    always_allowed: tuple[str, ...] = ()
    starts: int = 0
    title: str | None = None
    title_chosen: bool = False
    """Whether a person chose it, so that the agent does not change it."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    pinned: bool = False
    archived: bool = False
    native_session_id: str | None = None
    model: str | None = None
    mode: str | None = None
    variant: str | None = None
    permission_mode: PermissionMode | None = None
    """What it was changed to; None while it is what the session was created with."""
    error: str | None = None
    started_at: str | None = None
    """When it began to run."""
    ended_at: str | None = None
    head: int | None = None
    """The turn that the conversation stands at, if that is not the last one because the session was rewound."""
    left_behind: tuple[tuple[int, int], ...] = ()
    """The numbers of the turns that rewinds left behind, as spans with both ends."""
    last_turn: Turn | None = None
    """The one that ended last."""
    workspace: WorkspaceCreatedData | None = None
    removed: str | None = None
    """Why its workspace is not kept any longer."""
    removed_at: str | None = None
    settled: int = -1
    """Up to which turn the files are kept in snapshots."""
    stand: Stand | None = None
    too_large: tuple[str, ...] = ()
    """Files that the last snapshot lacks because of their size."""
    restoring: SessionRewoundData | None = None
    """A rewind whose files are not back yet."""
    delivered: bool = False
    delivery: DeliveryCompletedData | None = None
    """The last one."""
    delivered_tree: str | None = None
    """The git tree of the files that it handed over."""
    forked_from: str | None = None
    handoff: SessionHandoffData | None = None
    """The agent that takes the next turn, while that is only wanted."""
    limit: SessionLimitData | None = None
    """The limit that ended the last turn, or whose end began the one under way."""
    limit_ends: str | None = None
    """When the limit ends that the agent told of in the turn under way."""
    agent_since: int = 0
    """The event since which its agent has it; what another one remembers is of no use to this one."""
    earlier_agents: tuple[tuple[str, int], ...] = ()
    """Those that had it before, each with the event at which the next one got it."""
    moved_at: int = 0
    """The event since which it is on the runner that it is on; snapshots from before are on another."""
    stays_paused: bool = False
    """Whether it was paused when it left its runner, and will be when it has arrived at another."""
    usage: SessionUsage | None = None
    usage_before: SessionUsage | None = None
    """What had been used when the last turn began."""
    changes: SessionChanges | None = None
    changed_files: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    fleet: FleetState | None = None
    """What its leader told of its followers."""

    @property
    def activity(self) -> Activity:
        """What the session is doing now."""
        if self.asks:
            return "waiting"
        return "working" if self.turn else "idle"

    @property
    def has_prompts(self) -> bool:
        """Whether prompts wait for their turn, and not for the end of a limit."""
        return bool(self.queue) and not is_waited_for(self.limit)

    def open_ask(self, ask_id: str) -> Ask | None:
        """An ask that waits for its answer."""
        return next((ask for ask in self.asks if ask.ask_id == ask_id), None)

    @property
    def is_delivery_outdated(self) -> bool:
        """Whether the files that were kept last are not those that were handed over last."""
        tree = self.stand.tree if self.stand is not None else None
        return self.delivered_tree is not None and tree not in {None, self.delivered_tree}

    @property
    def stands_at(self) -> int:
        """The turn that the conversation stands at; 0 is the beginning."""
        return self.turn_count if self.head is None else self.head

    @property
    def workspace_id(self) -> str | None:
        """The id of the workspace, while it is there."""
        return self.workspace.workspace_id if self.workspace is not None and self.removed is None else None

    @property
    def is_new_to_agent(self) -> bool:
        """Whether the turn that begins next is the first of its agent, and another one had the turn before."""
        before = self.last_turn.last_sequence if self.last_turn is not None else None
        return self.agent_since > (before or 0)

    @property
    def is_between_runners(self) -> bool:
        """Whether it ran before, and waits for another runner or is being made there anew."""
        return self.started_at is not None and self.status in {"queued", "provisioning"}

    @property
    def ended(self) -> bool:
        """Whether nothing more can happen."""
        return self.status in TERMINAL


def rule_of(permission: PermissionData) -> str:
    """What "always" allows: the adapter's own pattern if it gives one, else the tool, else the very action."""
    pattern = (permission.metadata or {}).get("always")
    return str(pattern or permission.tool or permission.action)


def apply(state: SessionState, event: Happened) -> SessionState:
    """The state after one more event."""
    change = CHANGES.get(event.type)
    if change is None:
        return state
    limit = _limit_after(state.limit, event, len(state.queue))
    return replace(change(state, event), limit=limit) if limit is not state.limit else change(state, event)


def _status(state: SessionState, event: Happened) -> SessionState:
    data: SessionStatusData = event.data
    ended_at = event.time if data.status in TERMINAL else None
    started_at = state.started_at or (event.time if data.status == "running" else None)
    is_paused = state.stays_paused or state.status in {"pausing", "paused"}
    stays_paused = is_paused and data.status in {"queued", "provisioning"}
    return replace(state, status=data.status, started_at=started_at, ended_at=ended_at, stays_paused=stays_paused)


_KNOWN = (
    *("title", "title_chosen", "labels", "pinned", "archived", "native_session_id"),
    *("model", "mode", "variant", "permission_mode"),
)
"""What an event may say of a session, and the session then is."""


def _info(state: SessionState, event: Happened) -> SessionState:
    data: SessionInfoData = event.data
    known = {name: value for name in _KNOWN if (value := getattr(data, name)) is not None}
    if data.permission_mode is not None:
        known["always_allowed"] = ()  # what was allowed under other permissions is asked for again
    return replace(state, **known, starts=data.start or state.starts)


def _turn_started(state: SessionState, event: Happened) -> SessionState:
    data: TurnStartedData = event.data
    number = state.turn_count + 1
    turn = Turn(
        turn_id=data.turn_id or f"turn_{number}",
        number=number,
        started_at=event.time,
        first_sequence=event.sequence,
        trace_id=data.trace_id,
        after=state.head,
    )
    return replace(
        state, turn=turn, turn_count=number, head=None, usage_before=state.usage, archived=False, limit_ends=None
    )


def _turn_ended(state: SessionState, event: Happened) -> SessionState:
    data: TurnEndedData = event.data
    error = None if data.outcome == "completed" else state.error
    return replace(state, turn=None, last_turn=turn_of(state, event), error=error)


def _asked(state: SessionState, event: Happened) -> SessionState:
    return replace(state, asks=(*state.asks, ask_of(state, event)))


def _permission_resolved(state: SessionState, event: Happened) -> SessionState:
    data: PermissionData = event.data
    rules = state.always_allowed
    if data.status == "accept_for_session" and rule_of(data) not in rules:
        rules = (*rules, rule_of(data))
    return replace(state, asks=_without(state.asks, data.permission_id), always_allowed=rules)


def _question_resolved(state: SessionState, event: Happened) -> SessionState:
    data: QuestionData = event.data
    return replace(state, asks=_without(state.asks, data.question_id))


def _queue(state: SessionState, event: Happened) -> SessionState:
    data: QueueUpdatedData = event.data
    return replace(state, queue=data.entries)


def _usage(state: SessionState, event: Happened) -> SessionState:
    data: UsageUpdatedData = event.data
    nothing = SessionUsage()
    return replace(state, usage=folds.used(state.usage or nothing, state.usage_before or nothing, data))


def _file(state: SessionState, event: Happened) -> SessionState:
    data: FileChangedData = event.data
    is_new = data.path not in state.changed_files and len(state.changed_files) < MOST_COUNTED_FILES
    changes = folds.changed(state.changes or SessionChanges(), data, is_new=is_new)
    files = (*state.changed_files, data.path) if is_new else state.changed_files
    return replace(state, changes=changes, changed_files=files)


def _error(state: SessionState, event: Happened) -> SessionState:
    data: ErrorData = event.data
    return replace(state, error=data.message, limit_ends=data.resets_at or state.limit_ends)


def _workspace(state: SessionState, event: Happened) -> SessionState:
    return replace(state, workspace=event.data)


def _snapshot(state: SessionState, event: Happened) -> SessionState:
    data: SnapshotCreatedData = event.data
    stand = Stand(snapshot_id=data.snapshot_id, turn=data.turn, tree=data.tree)
    too_large = tuple(file.path for file in data.too_large)
    return replace(state, settled=max(state.settled, data.turn), stand=stand, too_large=too_large)


def _delivery(state: SessionState, event: Happened) -> SessionState:
    data: DeliveryCompletedData = event.data
    if data.pull_request is None and state.delivery is not None:
        data = replace(data, pull_request=state.delivery.pull_request)
    tree = state.stand.tree if state.stand is not None else None
    return replace(state, delivered=True, delivery=data, delivered_tree=tree)


def _pull_request(state: SessionState, event: Happened) -> SessionState:
    return replace(state, delivery=state.delivery and replace(state.delivery, pull_request=event.data))


def _rewound(state: SessionState, event: Happened) -> SessionState:
    data: SessionRewoundData = event.data
    left = tuple(span for span in state.left_behind if span[1] < data.turn)
    if data.turn < state.turn_count:
        left = (*left, (data.turn + 1, state.turn_count))
    return replace(
        state,
        head=data.turn,
        left_behind=left,
        native_session_id=data.native_session_id,
        restoring=data,
        error=None,
    )


def _removed(state: SessionState, event: Happened) -> SessionState:
    data: WorkspaceRemovedData = event.data
    return replace(state, removed=data.message, removed_at=event.time)


def _restored(state: SessionState, event: Happened) -> SessionState:
    data: WorkspaceRestoredData = event.data
    if (found := data.changes) is None:
        return replace(state, restoring=None)
    counts = SessionChanges(files=found.files, added=found.added, removed=found.removed)
    return replace(state, restoring=None, changes=counts if found.files else None, changed_files=found.paths)


def _forked(state: SessionState, event: Happened) -> SessionState:
    data: SessionForkedData = event.data
    return replace(
        state,
        forked_from=data.parent_id,
        native_session_id=data.native_session_id,
        error=None,
        usage=None,  # the parent has paid for the turns that were copied
        usage_before=None,
    )


def _moved(state: SessionState, event: Happened) -> SessionState:
    data: SessionMovedData = event.data
    return replace(state, native_session_id=data.native_session_id, moved_at=event.sequence, restoring=None)


def _handoff(state: SessionState, event: Happened) -> SessionState:
    data: SessionHandoffData = event.data
    if data.status != "done":
        return replace(state, handoff=data if data.status == "requested" else None)
    return replace(
        state,
        handoff=None,
        agent_since=event.sequence,
        earlier_agents=(*state.earlier_agents, (data.from_agent, event.sequence)),
        native_session_id=None,
        model=None,
        mode=None,
        variant=None,
        permission_mode=data.permission_mode or state.permission_mode,
        always_allowed=(),  # what one agent may do says nothing about another
    )


CHANGES: dict[str, Callable[[SessionState, Happened], SessionState]] = {
    "session.status": _status,
    "session.info": _info,
    "turn.started": _turn_started,
    "turn.ended": _turn_ended,
    "permission.requested": _asked,
    "permission.resolved": _permission_resolved,
    "question.requested": _asked,
    "question.resolved": _question_resolved,
    "queue.updated": _queue,
    "usage.updated": _usage,
    "file.changed": _file,
    "error": _error,
    "workspace.created": _workspace,
    "snapshot.created": _snapshot,
    "delivery.completed": _delivery,
    "delivery.updated": _pull_request,
    "session.rewound": _rewound,
    "workspace.restored": _restored,
    "workspace.removed": _removed,
    "session.forked": _forked,
    "session.moved": _moved,
    "session.handoff": _handoff,
    "session.limit": lambda state, _: state,
    "comment.updated": lambda state, event: replace(state, comments=folds.comments_after(state.comments, event.data)),
} | dict.fromkeys(fleet.CHANGES, lambda state, event: replace(state, fleet=fleet.after(state.fleet, event)))


def ask_of(state: SessionState, event: Happened) -> Ask:
    """The inbox entry for an ask event, open or decided."""
    permission = event.data if isinstance(event.data, PermissionData) else None
    question = event.data if isinstance(event.data, QuestionData) else None
    ask_id = permission.permission_id if permission else event.data.question_id
    opened = next((ask for ask in state.asks if ask.ask_id == ask_id), None)
    is_open = event.data.status == "requested"
    return Ask(
        ask_id=ask_id,
        kind="permission" if permission else "question",
        session_id=event.session_id,
        agent=event.agent,
        status=event.data.status,
        requested_at=opened.requested_at if opened else event.time,
        turn_id=opened.turn_id if opened else state.turn.turn_id if state.turn else None,
        resolved_at=None if is_open else event.time,
        permission=permission,
        question=question,
    )


def turn_of(state: SessionState, event: Happened) -> Turn | None:
    """The turn as it stands after a turn event; `state` is the one before it."""
    if event.type == "turn.started":
        return apply(state, event).turn
    data: TurnEndedData = event.data
    if state.turn is None:
        return None
    return replace(
        state.turn,
        ended_at=event.time,
        last_sequence=event.sequence,
        outcome=data.outcome,
        stop_reason=data.stop_reason,
    )


def _without(asks: tuple[Ask, ...], ask_id: str) -> tuple[Ask, ...]:
    return tuple(ask for ask in asks if ask.ask_id != ask_id)


state_in = msgspec.json.Decoder(SessionState).decode
"""What the log of a session adds up to, as its row has it."""


_FORGETTING = frozenset({"turn.ended", "session.handoff", "session.rewound", "session.forked"})
_ENDS = frozenset({"stopping", "stopped", "completed", "failed", "cancelled"})


def is_waited_for(limit: SessionLimitData | None) -> bool:
    """Whether the session goes on by itself when the limit ends."""
    return limit is not None and limit.status == "reached" and limit.waits


def is_new_limit(limit: SessionLimitData | None, before: SessionLimitData | None) -> bool:
    """Whether a limit was reached just now, and not only something said of the one before."""
    if limit is None or limit.status != "reached":
        return False
    return before is None or (limit.until, limit.attempt) != (before.until, before.attempt)


def _limit_after(limit: SessionLimitData | None, event: Happened, queued: int) -> SessionLimitData | None:
    """The limit after one more event; `queued` prompts waited before it."""
    if event.type == "session.limit":
        data: SessionLimitData = event.data
        return data
    if limit is None or event.type in _FORGETTING:
        return None
    return None if limit.status == "reached" and _goes_on_otherwise(event, queued) else limit


def _goes_on_otherwise(event: Happened, queued: int) -> bool:
    """Whether a person decided what comes next: a turn, one more prompt, the end, or a place out of the way."""
    match event.data:
        case QueueUpdatedData(entries=entries):
            return len(entries) > queued
        case SessionStatusData(status=status):
            return status in _ENDS
        case SessionInfoData(archived=archived):
            return archived is True
        case _:
            return event.type == "turn.started"
