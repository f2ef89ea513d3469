"""What a runner itself says about workspaces: sources, orders, snapshots; what the server sees is in wire/."""

import msgspec

from ostler.wire.workspaces import ChangedBy, LargeFile, SnapshotProvider


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


class FetchedSubmodule(msgspec.Struct, frozen=True, kw_only=True):
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
    providers: tuple[SnapshotProvider, ...] = ()
    """Which to try first, in order; the others follow unless `strict`."""
    strict: bool = False
    visible: bool = False
    """Only providers whose tree every process of the machine sees; a container engine needs that."""
    scope: str = "default"
    """Whose order it is; fetched repositories are shared inside a scope only."""


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
    changed_by: ChangedBy = "agent"
    """Who made what differs from the snapshot before."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """How a process gets into a workspace: words before its own command, and its folder."""

    prefix: tuple[str, ...]
    folder: str

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The command that runs `argv` inside."""
        return (*self.prefix, *argv)


class DiffLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a difference is shown; beyond it, beginnings and ends remain."""

    files: int = 2000
    file_bytes: int = 64 * 1024
    file_lines: int = 2000
    head_lines: int = 200
    tail_lines: int = 50
    total_bytes: int = 8 * 2**20
    context: int = 3
