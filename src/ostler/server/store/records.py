"""What goes into the store and what comes out of it."""

from typing import Any, Literal, NamedTuple

import msgspec

from ostler.server.store.bursts import Mark
from ostler.wire.delivery import DeliveryAccess
from ostler.wire.events import PermissionMode, PermissionRule, SessionStatus
from ostler.wire.grants import Grant
from ostler.wire.providers import ClientTool, CodeTool, McpServer, Provider
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.runners import Needs
from ostler.wire.sessions import Ask, Turn, TurnLimits
from ostler.wire.tasks import TaskSpec
from ostler.wire.workspaces import Snapshot

DEFAULT_TENANT = "default"
"""Of sessions that name none."""
DONE = "done"
"""The scope of claims among the answers to Idempotency-Keys."""


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a session was created with, or its agent was told later."""

    cwd: str
    env: dict[str, str]
    permission_mode: PermissionMode
    permission_rules: tuple[PermissionRule, ...] = ()
    grant: Grant = Grant()
    """Whose it is, and what it may have."""
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    instructions: str | None = None
    system_prompt: str | None = None
    limits: TurnLimits = TurnLimits()
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    client_tools: tuple[ClientTool, ...] = ()
    code_tools: tuple[CodeTool, ...] = ()
    turn_timeout_seconds: float | None = None
    provider: Provider | None = None
    mcp_servers: dict[str, McpServer] = msgspec.field(default_factory=dict)
    workspace: WorkspaceOrder | None = None
    """What its workspace is made from; without it the agent works in `cwd` as it is."""
    folder_of: str | None = None
    """The session that the runner made `cwd` for, if it was made for another one."""
    task: TaskSpec | None = None
    """The task that started it."""
    delivery: DeliveryAccess | None = None
    """What its forge is entered with, if that was said later."""
    needs: Needs | None = None
    """What a runner must be to have it."""
    runner_name: str = "local"
    """What the runner that it is on is called."""
    moved_from: str | None = None
    """What the one that it was on before is called."""
    moved_because: str = ""
    next_provider: Provider | None = None
    """The model provider of the agent that it is being handed over to."""

    @property
    def tenant(self) -> str:
        """Whose it is: the word of its task, which only the tenant `default` may choose, or that of its project."""
        return (self.task.tenant_id if self.task is not None else None) or self.grant.tenant


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the sessions table; `state` is the folded log as JSON."""

    id: str
    project: str
    key: str
    agent: str
    status: SessionStatus
    title: str | None
    labels: dict[str, str]
    created_at: str
    updated_at: str
    spec: SessionSpec
    state: bytes
    last_sequence: int
    owner: str
    """The server that has it."""
    epoch: int
    """Of the claim that it has it with."""
    runner: str | None
    """The id of the runner that it is on; None while it waits for one."""

    @property
    def cwd(self) -> str:
        """The folder that the agent works in, unless it has a workspace."""
        return self.spec.cwd

    @property
    def folder_of(self) -> str | None:
        """The session that the runner made this folder for; None for one that a client named."""
        is_own = self.spec.cwd.endswith(f"/sessions/{self.id}/workspace")
        return self.id if is_own else self.spec.folder_of

    @property
    def order(self) -> WorkspaceOrder | None:
        """What its workspace is made from."""
        return self.spec.workspace

    @property
    def is_in_place(self) -> bool:
        """Whether its agent works in a person's own folder, with a workspace or without."""
        if self.order is not None:
            return self.order.repo.mode == "checkout"
        return bool(self.cwd) and self.folder_of is None

    @property
    def task(self) -> TaskSpec | None:
        """The task that started it."""
        return self.spec.task

    @property
    def delivery(self) -> DeliveryAccess | None:
        """What its forge is entered with, if that was said later."""
        return self.spec.delivery

    @property
    def instructions(self) -> str | None:
        """What the agent is told beside its prompts."""
        return self.spec.instructions

    @property
    def needs(self) -> Needs:
        """What a runner must be to have it."""
        return self.spec.needs or Needs()

    @property
    def runner_name(self) -> str:
        """What the runner that it is on is called."""
        return self.spec.runner_name

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.spec.tenant

    @property
    def share(self) -> str:
        """Whose share of the slots it takes."""
        return share_of(self.project, self.spec)


def share_of(project: str, spec: SessionSpec) -> str:
    """Whose share of the slots a session takes: that of the project its task names, within its tenant."""
    return f"{spec.tenant}/{(spec.task.project_id if spec.task is not None else None) or project}"


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an append changes in the session's row."""

    status: SessionStatus
    title: str | None
    labels: dict[str, str]
    updated_at: str
    state: bytes
    workspace: str | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far an agent's process has come: which of the session's processes, and its step."""

    start: int
    step: int


class Done(msgspec.Struct, frozen=True):
    """What came of an act that a request claimed."""

    claim: str
    result: bytes


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """Durable work to be done; a second one with the same key is none."""

    key: str
    kind: str
    body: bytes = b""
    """What it has to know; it stays in the store."""
    after: float = 0.0
    """Seconds from now."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Durable work that is not done yet."""

    key: str
    kind: str
    body: bytes
    tries: int
    """How often it was tried in vain."""
    age: float
    """Seconds since it was due for the first time; below zero if it is not yet."""


class Used(NamedTuple):
    """What a turn has used so far; it counts on the day of its last news."""

    turn: int
    project: str
    actor: str
    """Who made the session."""
    day: str
    tokens: int
    cost: float


class UnderWay(NamedTuple):
    """How many sessions of a project, made by one actor, are not over or have files."""

    project: str
    actor: str | None
    live: int
    """Those that are on a runner."""
    waiting: int
    """Those that wait for one."""
    workspaces: int
    """Those whose files are on a disk of ours, or will be; some of them may be over."""


class UsedBy(NamedTuple):
    """What turns of a project used on a day, in sessions that one actor made."""

    project: str
    actor: str
    tokens: int
    cost: float


class Placed(NamedTuple):
    """Where a session is from now on, and which agent has it if that is another one."""

    runner: str | None
    spec: SessionSpec
    agent: str | None = None
    arrives: bool = False
    """Whether it was on no runner before: then its server must still be the one that the runner is linked to."""


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """A burst of encoded events of one session with everything that must change together with them."""

    session_id: str
    epoch: int
    """Of the claim that the session was had with when this was decided."""
    time: str
    first: int
    events: tuple[bytes, ...]
    raws: tuple[bytes | None, ...]
    packed: bytes | None = None
    """Both as they are stored, if that was not left to the writer."""
    change: StateChange | None
    turns: tuple[Turn, ...] = ()
    asks: tuple[Ask, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    marks: tuple[Mark, ...] = ()
    progress: Progress | None = None
    done: Done | None = None
    jobs: tuple[NewJob, ...] = ()
    """What is to be done because of these events."""
    placed: Placed | None = None
    """Which runner the session is on since, if that changes."""
    used: Used | None = None
    """What the turn under way has used, if that changes."""

    @property
    def last(self) -> int:
        """The sequence of the last event."""
        return self.first + len(self.events) - 1


class AppendResult(NamedTuple):
    """Where an append came to lie: the position of its last event, and the bytes it takes."""

    position: int
    size: int


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be created."""

    id: str
    project: str
    key: str
    agent: str
    created_at: str
    spec: SessionSpec
    runner: str | None
    """The id of the runner that it is on; None if it has to wait for one."""

    def stored(self, first: Append, owner: str) -> SessionRecord:
        """Its row when its owner has stored it with these events, which say how it is."""
        if (change := first.change) is None:
            raise ValueError("the first events of a session must say how it is")
        return SessionRecord(
            id=self.id,
            project=self.project,
            key=self.key,
            agent=self.agent,
            status=change.status,
            title=change.title,
            labels=change.labels,
            created_at=self.created_at,
            updated_at=change.updated_at,
            spec=self.spec,
            state=change.state,
            last_sequence=first.last,
            owner=owner,
            epoch=first.epoch,
            runner=self.runner,
        )


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions to list."""

    project: str
    page: int
    per_page: int
    statuses: tuple[str, ...] = ()
    agent: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    unlabelled: tuple[str, ...] = ()
    """Of these labels the ones that a session may lack instead."""
    text: str | None = None
    project_id: str | None = None
    """What tasks call their project."""
    tenant_id: str | None = None
    """What tasks call their tenant; `default` if they name none."""
    only_tasks: bool = False


class SessionName(NamedTuple):
    """What a session is called."""

    key: str
    title: str | None


class StoredEvent(msgspec.Struct, frozen=True):
    """One encoded event with its number: a sequence, or a position in the project-wide order."""

    number: int
    body: bytes
    raw: bytes | None = None


class StoredItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a log: the event that it began with while it is open, else the one that completed it."""

    number: int
    """Its place in the conversation, from 1 on."""
    first: int
    last: int
    is_open: bool
    turn_id: str | None
    body: bytes


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer that was given to an Idempotency-Key."""

    fingerprint: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def encode(value: Any) -> bytes:
    """JSON of anything that is stored."""
    return msgspec.json.encode(value)


class RunnerToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a new runner may register with; the token itself is not stored, only its hash."""

    id: str
    hash: str
    labels: dict[str, str]
    """What every runner that registers with it is labelled with, whatever it says itself."""
    uses: int | None
    """How many more runners may register with it; None for any number."""
    expires_at: str | None
    created_at: str


class RunnerKey(msgspec.Struct, frozen=True, kw_only=True):
    """A runner that has registered; its key is known by its hash."""

    runner: str
    hash: str
    name: str
    labels: dict[str, str]
    """Those that its token fixed."""
    created_at: str
    revoked_at: str | None = None
    draining: bool = False
    drain_until: str | None = None
    """How long turns under way there may go on."""


class ManagedRunner(msgspec.Struct, frozen=True, kw_only=True):
    """A runner that a server makes itself, or has made."""

    id: str
    """Of its host, and the runner's name."""
    pool: str
    server: str
    """Who looks after it."""
    runner: str | None
    """The runner's id, once it has registered."""
    state: Literal["making", "made", "removing"]
    created_at: str


class PromptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that somebody saved."""

    project: str
    name: str
    text: str
    description: str | None
    created_at: str
    updated_at: str
