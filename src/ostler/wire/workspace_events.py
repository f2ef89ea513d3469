"""What events tell of workspaces, snapshots, delivery, going back, handing over, limits and comments."""

from typing import Literal

from ostler.wire.struct import Wire
from ostler.wire.workspaces import ChangedBy, CheckStatus, DeliveryMode, LargeFile, PullRequestStatus


class WorkspaceCreatedData(Wire, frozen=True, kw_only=True):
    """The session has files of its own."""

    workspace_id: str
    provider: str
    path: str
    """Where the agent finds them."""
    visible: bool
    """Whether other processes of the machine find them there too."""
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    forked_from: str | None = None
    """The snapshot they began as."""
    setup: Literal["run", "cached"] | None = None
    """Whether the setup command was run, or its kept result was used."""


class SnapshotCreatedData(Wire, frozen=True, kw_only=True):
    """The state of the files was kept."""

    snapshot_id: str
    workspace_id: str
    turn: int
    """How many turns had ended."""
    tree: str
    """The git tree of the files, without ignored ones."""
    turn_id: str | None = None
    note: str | None = None
    native_session_id: str | None = None
    memory_kept: bool = False
    """Whether the agent's own memory of that moment is kept with it."""
    restored_from: str | None = None
    """The snapshot whose files were put back just before, while the conversation stayed."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that it lacks because of their size."""
    changed_by: ChangedBy = "agent"
    """Who made what differs from the snapshot before: in a folder of a person's own, also that person."""


class ArtifactCreatedData(Wire, frozen=True, kw_only=True):
    """The agent produced a file worth showing."""

    path: str
    action: Literal["write", "edit"]
    artifact_type: str
    item_id: str | None = None


class PullRequestData(Wire, frozen=True, kw_only=True):
    """A pull request as its forge shows it."""

    number: int
    url: str
    branch: str
    target: str
    state: PullRequestStatus = "open"
    checks: CheckStatus | None = None
    """What its checks say together; absent if there are none, or the forge does not tell."""
    mergeable: bool | None = None
    """Whether the forge would merge it now; absent if it does not tell."""
    unseen_since: str | None = None
    """Since when the forge does not show it; what is told here was so before. Absent while it does."""
    unseen_because: str | None = None
    """Why not."""


class DeliveryCompletedData(Wire, frozen=True, kw_only=True):
    """The result was handed over; `url` is the pull request, the repository, the folder, or where the patch is."""

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
    pull_request: PullRequestData | None = None
    """The one that was opened or brought up to date."""


class SessionRewoundData(Wire, frozen=True, kw_only=True):
    """The session is again what it was at the end of a turn; items that began after `sequence` no longer count."""

    turn: int
    sequence: int
    """The last event of that turn."""
    snapshot_id: str
    workspace_id: str
    """Whose snapshot it is; another workspace's if the turn was taken from a parent."""
    turn_id: str | None = None
    native_session_id: str | None = None
    """What the agent's own memory goes on with; absent when it is told the conversation."""


class RestoredChanges(Wire, frozen=True, kw_only=True):
    """How much files that were put back differ from what the workspace began with."""

    files: int
    """Counted up to 200, as `paths`."""
    added: int
    removed: int
    paths: tuple[str, ...]


class WorkspaceRestoredData(Wire, frozen=True, kw_only=True):
    """The files are those of a snapshot again."""

    workspace_id: str
    snapshot_id: str
    changes: RestoredChanges | None = None
    """Absent if they could not be counted."""


class WorkspaceRemovedData(Wire, frozen=True, kw_only=True):
    """The files of a session that has ended are not kept any longer."""

    workspace_id: str
    reason: Literal["age", "count", "disk"]
    message: str


class SessionMovedData(Wire, frozen=True, kw_only=True):
    """The session goes on on another runner, or on the same one without what it had there."""

    from_runner: str
    """The name of the runner that it was on."""
    to_runner: str
    reason: str
    """Why it did not stay."""
    lost: tuple[str, ...] = ()
    """What did not come along, in words; empty if that is nothing."""
    turn: int | None = None
    """The last turn whose end the files and the agent's memory are of; absent if neither came along."""
    native_session_id: str | None = None
    """What the agent's own memory goes on with; absent when it is told the conversation."""


class SessionForkedData(Wire, frozen=True, kw_only=True):
    """The session begins as another one was at the end of a turn; the events before this one are taken from there."""

    parent_id: str
    turn: int
    """In the parent's own count."""
    snapshot_id: str
    native_session_id: str | None = None
    """What the agent's own memory goes on with; absent when it is told the conversation."""


class SessionHandoffData(Wire, frozen=True, kw_only=True):
    """Another agent has the session, or will at the end of the turn, with the same files and what was said so far."""

    status: Literal["requested", "done", "dropped"]
    from_agent: str
    to_agent: str
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    permission_mode: Literal["default", "plan", "bypass"] | None = None
    """What the new agent may do; absent if that stays as it is."""
    reason: str | None = None
    """Why it is not done, if it was dropped."""


class SessionLimitData(Wire, frozen=True, kw_only=True):
    """A limit of the agent's account or provider ended a turn, and when that limit ends is known."""

    status: Literal["reached", "over"]
    """Over: the session goes on now."""
    until: str
    """When the limit ends, in RFC 3339."""
    waits: bool
    """Whether the session goes on by itself then; told again if that has changed."""
    attempt: int
    """How many turns in a row ended so before the agent did anything."""
    acted: bool
    """Whether the agent did something in that turn: then it is asked to go on, else it gets the same prompt again."""


CommentSide = Literal["new", "old"]


class Comment(Wire, frozen=True, kw_only=True):
    """What somebody has to say about lines of a file, as the log has it."""

    comment_id: str
    path: str
    """On the side that it is about."""
    text: str
    created_at: str
    side: CommentSide = "new"
    """Old: about lines as they were in the state `base`, which are removed or changed since."""
    base: str = "base"
    """The state that the files were compared with."""
    start_line: int | None = None
    """Absent if it is about the whole file."""
    end_line: int | None = None
    quote: tuple[str, ...] = ()
    """The lines it is about, by which they are found when others have moved them."""
    before: str | None = None
    """The line before them."""
    after: str | None = None
    """The line after them."""
    author: str | None = None
    prompt_id: str | None = None
    """The prompt that it was sent with; absent while the agent does not know of it."""


class CommentUpdatedData(Wire, frozen=True, kw_only=True):
    """A comment on the files as it is now: new, changed, sent to the agent, or removed."""

    comment: Comment
    removed: bool = False
