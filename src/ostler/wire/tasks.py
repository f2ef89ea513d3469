"""Tasks: the order that starts a session, in the camelCase words of the tasks API."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.events import PermissionMode, PermissionRules, SessionStatus
from ostler.wire.providers import CodeTool, McpServers, ProviderType
from ostler.wire.struct import Answer, Body
from ostler.wire.texts import Branch, Choice, Labels, Line, Paragraphs, Prompt, Variables, WebAddress, WebhookSecret
from ostler.wire.workspaces import (
    CheckStatus,
    Deliver,
    DeliveryMode,
    ForgeKind,
    LargeFile,
    PullRequestStatus,
    Repo,
    RepoCredential,
    RuntimeType,
    SnapshotProvider,
)


class TaskProvider(Body, frozen=True, kw_only=True):
    """Where the agent finds its model."""

    type: ProviderType
    base_url: WebAddress
    api_key: str | None = None
    """Never shown again."""


class TaskSettings(Body, frozen=True, kw_only=True, omit_defaults=True):
    """How the agent should work; the same as for a session."""

    model: Choice | None = None
    variant: Choice | None = None
    mode: Choice | None = None
    instructions: str | None = None
    """What the agent is told in every turn, added to its own system prompt; at most 64 KiB. Absent for the server's
    setting, empty for none."""
    permission_mode: PermissionMode = "default"
    permission_rules: PermissionRules = ()
    """What is decided without anybody being asked; of the rules that fit, the strictest holds. Not with `bypass`."""
    provider: TaskProvider | None = None
    env: Variables = msgspec.field(default_factory=dict)
    """Variables for the agent's process; values are never shown again."""
    mcp_servers: McpServers = msgspec.field(default_factory=dict)
    code_tools: tuple[CodeTool, ...] = ()
    """Tools that are programs, run in a sandbox; for an agent that takes them (`codeTools` in the catalogue)."""
    turn_timeout_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How much the agent writes at most in one answer of its model; for an agent that obeys it (`limits` in the
    catalogue)."""


class TaskAgent(Body, frozen=True, kw_only=True):
    """Which agent works on the task."""

    type: str
    version: str | None = None
    """`latest`, or one that is installed."""
    settings: TaskSettings = msgspec.field(default_factory=TaskSettings)


class TaskResources(Body, frozen=True, kw_only=True):
    """Limits of a container."""

    cpu: Annotated[float, msgspec.Meta(gt=0)] | None = None
    memory_mib: Annotated[int, msgspec.Meta(ge=1)] | None = msgspec.field(default=None, name="memoryMiB")


class TaskRuntime(Body, frozen=True, kw_only=True):
    """What the agent's processes run in."""

    type: RuntimeType = "local"
    devcontainer_path: str | None = None
    resources: TaskResources | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """What the runner must have, such as `gpu: "true"`; the session waits until there is one."""


class TaskWorkspace(Body, frozen=True, kw_only=True):
    """How the workspace should be made."""

    snapshot_preference: tuple[SnapshotProvider, ...] = ()
    execution_host_id: str | None = None
    """The runner that must have it, by id or name; see GET /runners."""
    setup: str | None = None
    """A shell command that is run in the new workspace before the agent is; its result is kept for the next task."""


class TaskDelivery(Body, frozen=True, kw_only=True):
    """How the result is handed over at the end of the first turn."""

    mode: DeliveryMode
    target_branch: Branch | None = None
    branch: Branch | None = None
    title: Line | None = None
    body: Paragraphs | None = None
    message: Paragraphs | None = None
    draft: bool = False
    credential: RepoCredential | None = None
    forge: ForgeKind | None = None
    api_url: str | None = None


class TaskWebhook(Body, frozen=True, kw_only=True):
    """Who hears about the end of the task, or a limit on its way."""

    event: Literal["session.completed", "session.failed", "session.ended", "session.limit"]
    """`session.ended` is told however it ended, `session.limit` each time a limit of the account ends a turn."""
    url: WebAddress
    """Public, or one of the server's `allowed_addresses`."""
    secret: WebhookSecret | None = None
    """What the calls are signed with, whsec_ and the base64 of 24 to 64 bytes; without it, the server's
    `webhook_secret`, or else one that is made and told in the answer. Never shown again."""


class CreateTask(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A task: what to do, on what, where, by whom, and how the result is handed over."""

    prompt: Prompt | None = None
    """Required, unless a template has one."""
    agent: TaskAgent | None = None
    """Required, unless a template names one."""
    template: str | None = None
    """A stored definition: `name`, `name@tag` or `name@sha256:...`. What is said here goes before what it says."""
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    """Values for the template's variables; no place for secrets."""
    repo: Repo = Repo(mode="none")
    runtime: TaskRuntime = msgspec.field(default_factory=TaskRuntime)
    workspace: TaskWorkspace = TaskWorkspace()
    delivery: TaskDelivery | None = None
    labels: Labels = msgspec.field(default_factory=dict)
    webhooks: tuple[TaskWebhook, ...] = ()
    tenant_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    keep_open: bool = False
    """Whether the session goes on after its first turn; otherwise it is completed then."""

    @property
    def worker(self) -> TaskAgent:
        """Who works on it, once that is known."""
        if self.agent is None:
            raise ValueError("the task names no agent yet")
        return self.agent


class TaskLinks(Answer, frozen=True, kw_only=True):
    """Where to look next."""

    self: str
    events: str
    logs: str
    workspace: str
    diff: str
    patch: str
    ide: str


class TaskWebhookSecret(Answer, frozen=True, kw_only=True):
    """What the calls of a webhook are signed with, since the task named nothing for that."""

    event: str
    url: str
    secret: str
    """Told this once."""


class TaskCreated(Answer, frozen=True, kw_only=True):
    """The session that works on the task."""

    id: str
    status: SessionStatus
    links: TaskLinks
    webhooks: tuple[TaskWebhookSecret, ...] = ()
    """Those that got a secret now."""


class TaskPart(Answer, frozen=True, kw_only=True):
    """What was ordered."""

    prompt: str
    labels: dict[str, str]
    attachments: tuple[str, ...] = ()


class SessionAgent(Answer, frozen=True, kw_only=True):
    """Who works on it."""

    type: str
    version: str | None = None
    model: str | None = None


class TaskRuntimeView(Answer, frozen=True, kw_only=True):
    """What it runs in."""

    type: RuntimeType
    devcontainer_path: str | None = None
    resources: TaskResources | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """What its runner must have."""


class TaskWorkspaceView(Answer, frozen=True, kw_only=True):
    """Where the files are."""

    provider: SnapshotProvider
    mount_path: str
    host: str


class PullRequestView(Answer, frozen=True, kw_only=True):
    """A pull request as its forge shows it."""

    number: int
    url: str
    branch: str
    target: str
    state: PullRequestStatus
    checks: CheckStatus | None = None
    """What its checks say together; absent if there are none, or the forge does not tell."""
    mergeable: bool | None = None
    """Whether the forge would merge it now; absent if it does not tell."""
    unseen_since: str | None = None
    """Since when the forge does not show it; what is told here was so before. Absent while it does."""
    unseen_because: str | None = None
    """Why not."""


class Delivered(Answer, frozen=True, kw_only=True):
    """The result as handed over; `url` is the pull request, the repository, the folder, or where the patch is."""

    mode: DeliveryMode
    snapshot_id: str
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    target: str | None = None
    number: int | None = None
    created: bool = True
    """False for a pull request that was open already."""
    size: int | None = None
    """Of a patch, in bytes."""
    left_out: tuple[str, ...] = ()
    """Submodules that were changed; a branch cannot hold that, a patch can."""
    too_large: tuple[LargeFile, ...] = ()
    """Changed files that were not handed over because of their size."""
    outdated: bool = False
    """Whether the files have changed since."""
    pull_request: PullRequestView | None = None
    """The last one, as its forge showed it last."""


class TaskVcs(Answer, frozen=True, kw_only=True):
    """Which repository, and how the result is handed over."""

    repo_mode: str
    url: str | None = None
    path: str | None = None
    """The folder that the files are a copy of."""
    branch: str | None = None
    commit: str | None = None
    delivery: DeliveryMode | None = None
    target_branch: str | None = None


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is remembered of a task with its session."""

    prompt: str
    delivery: Deliver | None = None
    keep_open: bool = False
    webhooks: tuple[TaskWebhook, ...] = ()
    tenant_id: str | None = None
    project_id: str | None = None
    agent_version: str | None = None


class RuntimeInfo(Answer, frozen=True, kw_only=True):
    """A kind of runtime and what it offers."""

    type: RuntimeType
    available: bool
    images: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    sandbox_profiles: tuple[str, ...] | None = None
    why_not: str | None = None


class RuntimeList(Answer, frozen=True, kw_only=True):
    """All kinds of runtimes."""

    items: tuple[RuntimeInfo, ...]


class UploadTicket(Answer, frozen=True, kw_only=True):
    """Where to send an archive; the address itself is the permission, so keep it."""

    token: str
    """Give it as repo.upload."""
    url: str
    method: Literal["PUT"]
    expires_at: str
    max_bytes: int


class HandoffSession(Body, frozen=True, kw_only=True):
    """Which agent takes the next turn, and how it works; what is not said is the new agent's own default."""

    agent: str
    model: Choice | None = None
    variant: Choice | None = None
    mode: Choice | None = None
    permission_mode: PermissionMode | None = None
    """Absent to leave it as it is."""
    provider: TaskProvider | None = None
    """The model provider to use instead of the agent's own; absent to keep the session's, if it has one."""
    message: Prompt | None = None
    """What the new agent is told, before prompts that wait; without it, it begins with the next prompt."""
    fork: bool = False
    """Make a new session for the other agent, with the same files, and leave this one as it is."""


class LogLine(Answer, frozen=True, kw_only=True):
    """One line of a session's log."""

    type: Literal["log"]
    level: str
    message: str
    ts: str


class LogList(Answer, frozen=True, kw_only=True):
    """The newest log lines, oldest first."""

    logs: tuple[LogLine, ...]
