"""Workspaces, snapshots, files and delivery as the API shows them."""

from typing import Annotated, Literal

import msgspec

from ostler.wire.struct import Answer, Body, Request, Wire
from ostler.wire.texts import Branch, Commit, Key, Line, Token

SnapshotProvider = Literal["zfs", "btrfs", "overlay", "overlay-root", "reflink", "git", "copy", "in-place"]
IN_PLACE: SnapshotProvider = "in-place"
"""A folder of a person's own, worked on as it is."""
RepoMode = Literal["git", "upload", "folder", "checkout", "none"]
RuntimeType = Literal["local", "devcontainer", "disabled"]
DeliveryMode = Literal["patch", "branch", "pr", "local", "commit"]
"""`local`: into the checkout or the folder of the runner's machine that the workspace was made from.

`commit`: of the agent's files, in the checkout of your own that it works in.
"""
ForgeKind = Literal["github", "gitlab", "gitea"]
PullRequestStatus = Literal["open", "draft", "merged", "closed"]
CheckStatus = Literal["passing", "failing", "pending"]
ChangeStatus = Literal["added", "modified", "deleted", "renamed", "type_changed"]
FileKind = Literal["file", "folder", "link", "other"]
ArchiveForm = Literal["tar", "zip"]
Ide = Literal["vscode", "cursor", "windsurf"]


class RepoCredential(Request, frozen=True, kw_only=True):
    """What the repository and its forge are entered with; never shown again."""

    token: Token
    user: Line = "x-access-token"

    def __repr__(self) -> str:
        return "RepoCredential(***)"


class Repo(Request, frozen=True, kw_only=True):
    """What a workspace begins with: a git repository, an upload, a private copy of a folder, or nothing.

    `checkout` is no copy: the agent works in a git checkout of your own, as it is.
    """

    mode: RepoMode = "git"
    url: str | None = None
    """Of a git repository: https, ssh, or an absolute path that the server allows."""
    branch: Branch | None = None
    """A branch or a tag; without it, the repository's default branch."""
    commit: Commit | None = None
    upload: str | None = None
    """The token or the id of an upload."""
    path: str | None = None
    """A folder of the runner's machine; it is copied and stays untouched, but for a `checkout`."""
    credential: RepoCredential | None = None
    submodules: bool = True
    """Whether submodules of a git repository are fetched too."""


class Resources(Request, frozen=True, kw_only=True):
    """Limits of a container."""

    cpu: Annotated[float, msgspec.Meta(gt=0)] | None = None
    memory_mib: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Runtime(Request, frozen=True, kw_only=True):
    """What the agent's processes run in."""

    type: RuntimeType = "local"
    devcontainer_path: str | None = None
    """Where devcontainer.json is in the repository; by default in its usual places."""
    resources: Resources | None = None


class WorkspaceWish(Body, frozen=True, kw_only=True):
    """How the workspace should be made."""

    snapshot_preference: tuple[SnapshotProvider, ...] = ()
    """Which ways to make it should be tried first."""
    execution_host_id: str | None = None
    """The runner that must have it, by id or name; see GET /runners."""


class ProviderVerdict(Answer, frozen=True, kw_only=True):
    """Whether a way to make workspaces works here, and if not, why."""

    provider: SnapshotProvider
    works: bool
    visible: bool
    why_not: str | None = None


class Submodule(Answer, frozen=True, kw_only=True):
    """A repository inside the repository of a workspace."""

    path: str
    commit: str
    url: str | None = None
    why_not: str | None = None
    """Why its folder is empty."""


class LargeFile(Wire, frozen=True, kw_only=True):
    """A file that is too large for snapshots."""

    path: str
    size: int


class Workspace(Answer, frozen=True, kw_only=True):
    """The isolated file tree of a session."""

    id: str
    provider: SnapshotProvider
    path: str
    """Where the agent finds it; other processes of the machine see it there only if `visible`."""
    visible: bool
    created_at: str
    refused: tuple[ProviderVerdict, ...] = ()
    """Ways that were preferred and did not work."""
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    submodules: tuple[Submodule, ...] = ()
    """Outer ones first."""
    forked_from: str | None = None
    """The snapshot it began as."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that it began with and that no snapshot will have."""


class Devcontainer(Answer, frozen=True, kw_only=True):
    """The container a session runs in."""

    config_path: str
    image: str
    engine: str
    workspace_folder: str
    """Where the workspace is inside."""
    container: str


class MountPaths(Answer, frozen=True, kw_only=True):
    """Where the workspace is found."""

    host: str
    container: str | None = None


class WorkspaceInfo(Answer, frozen=True, kw_only=True):
    """Where a session's workspace is, and what made it."""

    session_id: str
    workspace: Workspace
    provider: SnapshotProvider
    mount_paths: MountPaths
    host: str
    devcontainer: Devcontainer | None = None


ChangedBy = Literal["agent", "person"]


class Snapshot(Wire, frozen=True, kw_only=True):
    """A frozen state of a session's workspace, as it is stored."""

    snapshot_id: str
    workspace_id: str
    turn: int
    """How many turns had ended; 0 is the beginning."""
    created_at: str
    sequence: int
    """Of its event in the log."""
    tree: str
    """The git tree of its files, without ignored ones."""
    turn_id: str | None = None
    note: str | None = None
    native_session_id: str | None = None
    memory_kept: bool = False
    """Whether the agent's own memory of that moment is kept with it."""
    restored_from: str | None = None
    """The snapshot whose files were put back just before, while the conversation stayed."""
    changed_by: ChangedBy = "agent"
    """Who made what differs from the snapshot before: in a folder of a person's own, also that person."""


class FileChange(Answer, frozen=True, kw_only=True):
    """What happened to one file."""

    path: str
    status: ChangeStatus
    old_path: str | None = None
    old_mode: str | None = None
    new_mode: str | None = None
    binary: bool = False
    added: int = 0
    removed: int = 0
    diff: str = ""
    """The unified diff; empty for binary files and in a summary."""
    truncated: bool = False


class Difference(Answer, frozen=True, kw_only=True):
    """All that differs between two states: `base`, `now`, or snapshots."""

    old: str
    new: str
    files: tuple[FileChange, ...]
    files_changed: int
    added: int
    removed: int
    truncated: bool = False
    """Whether `files` is not all, or some diffs are cut; the patch is never cut."""
    too_large: tuple[LargeFile, ...] = ()
    """Changed files that are not compared because of their size."""


class FileEntry(Answer, frozen=True, kw_only=True):
    """One name in a workspace."""

    path: str
    kind: FileKind
    size: int
    modified_at: str
    executable: bool = False
    target: str | None = None
    """Where a link points, as it says itself."""


class FileListing(Answer, frozen=True, kw_only=True):
    """What is in a folder, by name."""

    path: str
    entries: tuple[FileEntry, ...]
    truncated: bool


class FileMatch(Answer, frozen=True, kw_only=True):
    """One place where the text stands; line 0 is the name itself."""

    path: str
    line: int
    text: str


class FileMatches(Answer, frozen=True, kw_only=True):
    """What a search found; `truncated` says that a limit ended it."""

    matches: tuple[FileMatch, ...]
    files_searched: int
    truncated: bool


class FilePaths(Answer, frozen=True, kw_only=True):
    """The files of a session by their paths; `truncated` says that a limit ended the list."""

    paths: tuple[str, ...]
    truncated: bool


class Artifact(Answer, frozen=True, kw_only=True):
    """A file that the agent wrote or edited, as it was last."""

    path: str
    action: Literal["write", "edit"]
    artifact_type: str
    sequence: int
    """Of its newest event."""
    time: str
    content: str
    """Where to read it."""
    item_id: str | None = None
    exists: bool = True
    size: int | None = None


class ArtifactList(Answer, frozen=True, kw_only=True):
    """The files that a session's agent wrote or edited, in the order of their last change."""

    artifacts: tuple[Artifact, ...]


class RewindSession(Body, frozen=True, kw_only=True):
    """Back to the end of a turn: files, conversation and the agent's memory; 0 is the beginning."""

    turn: Annotated[int, msgspec.Meta(ge=0)]


class UndoTurn(Body, frozen=True, kw_only=True):
    """Which turn's changes of files to take back; the conversation, and what was changed since, stay."""

    turn: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Without it, what was changed since the beginning; in a folder of your own it must be named."""
    paths: tuple[str, ...] | None = None
    """Only these files. By default all, but in a folder of your own only those that the agent's tools named."""
    lines: Annotated[tuple[int, ...], msgspec.Meta(min_length=2, max_length=2)] | None = None
    """Of one file only the changes in these lines, from the first to the last, as it was after that turn."""


class Undone(Answer, frozen=True, kw_only=True):
    """What was taken back."""

    turn: int | None = None
    paths: tuple[str, ...]
    """The files that were written or removed."""
    left: tuple[str, ...]
    """Changed in that turn and not taken back: by a command of the agent, or by you. Name them to take them back."""
    snapshot_id: str
    """Of the files as they are then."""


class ApplyChanges(Body, frozen=True, kw_only=True):
    """Which changes to bring into the folder that the workspace was made from."""

    paths: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=1000)]
    """These files, as they are now."""
    lines: Annotated[tuple[int, ...], msgspec.Meta(min_length=2, max_length=2)] | None = None
    """Of one file only the changes in these lines, from the first to the last, as it is now."""


class AppliedChanges(Answer, frozen=True, kw_only=True):
    """What was brought there."""

    folder: str
    paths: tuple[str, ...]
    """The files that were written or removed; none if all of it was there."""


class ForkSession(Body, frozen=True, kw_only=True):
    """A new session that begins as this one was at the end of a turn; without a turn, as it is now."""

    turn: Annotated[int, msgspec.Meta(ge=0)] | None = None
    key: Key | None = None
    title: str | None = None


class Deliver(Request, frozen=True, kw_only=True):
    """How the result is handed over."""

    mode: DeliveryMode
    branch: Branch | None = None
    """The branch that is pushed; by default one named after the session."""
    target_branch: Branch | None = None
    """Of a pull request: where it goes to. Of a branch: the branch that is pushed, if `branch` is absent."""
    title: str | None = None
    body: str | None = None
    message: str | None = None
    """Of the commit."""
    draft: bool = False
    credential: RepoCredential | None = None
    """Without it, the one the workspace was made with."""
    forge: ForgeKind | None = None
    """Needed where the repository's host does not tell."""
    api_url: str | None = None
    """The forge's interface, if it is not at its usual place."""
    paths: tuple[str, ...] | None = None
    """In a checkout of your own: only these files; by default those that the agent's tools named."""


class OpenIde(Body, frozen=True, kw_only=True):
    """Which editor to open a workspace with."""

    ide: Ide


class IdeCommands(Answer, frozen=True, kw_only=True):
    """What to run to open a workspace in an editor."""

    ide: Ide
    commands: tuple[str, ...]
    notes: str


class GitRef(Answer, frozen=True, kw_only=True):
    """A branch or tag of a repository."""

    name: str
    kind: Literal["branch", "tag"]
    commit: str


class GitRefs(Answer, frozen=True, kw_only=True):
    """What a repository offers."""

    url: str
    refs: tuple[GitRef, ...]
    default_branch: str | None = None


class MadeRepository(Answer, frozen=True, kw_only=True):
    """The git repository that a folder became, with a first commit of what was there."""

    path: str
    branch: str | None = None
    commit: str
    files: int
    """How many the commit has."""


class Folder(Answer, frozen=True, kw_only=True):
    """A folder that sessions may use."""

    path: str
    name: str
    repository: bool
    """Whether it is the top of a git repository."""


class FolderListing(Answer, frozen=True, kw_only=True):
    """The folders in a folder of the machine, by name; of an empty path, those that one may begin at."""

    path: str
    folders: tuple[Folder, ...]
    truncated: bool
    parent: str | None = None
    """Absent where one may not go further up."""
    home: str | None = None
    """What ~ means, where that may be used."""
    repository: bool = False
    """Whether this one is the top of a git repository."""


class Upload(Answer, frozen=True, kw_only=True):
    """An archive that waits to become a workspace."""

    id: str
    size: int
    sha256: str
