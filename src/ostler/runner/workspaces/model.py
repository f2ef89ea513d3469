"""What callers say and hear about workspaces: sources, orders, workspaces, snapshots, differences."""

from typing import Literal

import msgspec

ProviderKind = Literal["zfs", "btrfs", "overlay", "overlay-root", "reflink", "git", "copy", "in-place"]
"""How a workspace gets its own tree; `in-place` is never chosen, only asked for."""

ChangeStatus = Literal["added", "modified", "deleted", "renamed", "type_changed"]


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """What a remote is entered with: a token by https, or a key file by ssh. Never shown, never part of an address."""

    token: str | None = None
    user: str = "x-access-token"
    """The name that goes with the token."""
    ssh_key_file: str | None = None
    ssh_known_hosts_file: str | None = None

    def __repr__(self) -> str:
        return "Credential(***)"


class GitSource(msgspec.Struct, frozen=True, kw_only=True, tag="git"):
    """A repository: a branch, a tag, a commit, or what the remote calls its head."""

    url: str
    branch: str | None = None
    """A branch or a tag."""
    commit: str | None = None
    credential: Credential | None = None
    submodules: bool = True
    """Whether its submodules are fetched too."""


class Submodule(msgspec.Struct, frozen=True, kw_only=True):
    """A repository inside a repository; without `why_not` it is there."""

    path: str
    commit: str
    url: str | None = None
    mirror: str | None = None
    why_not: str | None = None


class UploadSource(msgspec.Struct, frozen=True, kw_only=True, tag="upload"):
    """An archive that was uploaded before."""

    upload: str


class FolderSource(msgspec.Struct, frozen=True, kw_only=True, tag="folder"):
    """A folder of this machine: a private copy of it, or, said explicitly, the folder itself."""

    path: str
    in_place: bool = False


class EmptySource(msgspec.Struct, frozen=True, kw_only=True, tag="none"):
    """Nothing, or a few files to begin with."""

    files: dict[str, str] = msgspec.field(default_factory=dict)


Source = GitSource | UploadSource | FolderSource | EmptySource


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A wish for a workspace."""

    source: Source
    providers: tuple[ProviderKind, ...] = ()
    """Which to try first, in order; the others follow unless `strict`."""
    strict: bool = False
    visible: bool = False
    """Only providers whose tree every process of the machine sees; a container engine needs that."""
    scope: str = "default"
    """Whose order it is; fetched repositories are shared inside a scope only."""


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """An archive that waits to become a workspace."""

    id: str
    size: int
    sha256: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a provider works here, tried in the real folder; and if not, why."""

    provider: ProviderKind
    works: bool
    visible: bool
    why_not: str | None = None


class LargeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is too large to be kept."""

    path: str
    size: int


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """One isolated file tree."""

    id: str
    provider: ProviderKind
    path: str
    """Where the agent finds the tree; other processes see it there only if `visible`."""
    visible: bool
    created_at: str
    refused: tuple[Verdict, ...] = ()
    """Providers that were preferred and did not work."""
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    """What the tree began as, for git sources."""
    submodules: tuple[Submodule, ...] = ()
    """Outer ones first."""
    forked_from: str | None = None
    """The snapshot it began as."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that it began with and that no snapshot will have."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen state of a workspace."""

    id: str
    workspace: str
    label: str
    created_at: str
    tree: str
    """The git tree of its files, without ignored ones."""
    unread: tuple[str, ...] = ()
    """Files that could not be read, and are missing."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that are missing because of their size."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """How a process gets into a workspace: words before its own command, and its folder."""

    prefix: tuple[str, ...]
    folder: str

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs `argv` inside."""
        return (*self.prefix, *argv)


class DiffLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a difference is told; beyond it, beginnings and ends remain."""

    files: int = 2000
    file_bytes: int = 64 * 1024
    file_lines: int = 2000
    head_lines: int = 200
    tail_lines: int = 50
    total_bytes: int = 8 * 2**20
    context: int = 3


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one file."""

    path: str
    status: ChangeStatus
    old_path: str | None = None
    """Only when it was renamed."""
    old_mode: str | None = None
    new_mode: str | None = None
    binary: bool = False
    added: int = 0
    removed: int = 0
    diff: str = ""
    """The unified diff; empty for binary files and when only a summary was asked for."""
    truncated: bool = False


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs between two states of a workspace."""

    old: str
    new: str
    """Snapshot ids, `base` or `now`."""
    files: tuple[FileChange, ...]
    files_changed: int
    added: int
    removed: int
    truncated: bool = False
    """Whether `files` is not all, or some diffs are cut."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that were changed and are not compared because of their size."""


class Ref(msgspec.Struct, frozen=True, kw_only=True):
    """A branch or tag of a remote."""

    name: str
    kind: Literal["branch", "tag"]
    commit: str


class Refs(msgspec.Struct, frozen=True, kw_only=True):
    """What a remote offers."""

    url: str
    default_branch: str | None
    refs: tuple[Ref, ...]
