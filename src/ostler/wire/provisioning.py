"""What a server and a runner say to each other about workspaces, beside what the API shows."""

from typing import Literal

import msgspec

from ostler.wire.grants import Grant
from ostler.wire.workspaces import (
    DeliveryMode,
    ForgeKind,
    LargeFile,
    Repo,
    RepoCredential,
    Runtime,
    SnapshotProvider,
    Workspace,
)

SetupOutcome = Literal["run", "cached"]


class WorkspaceOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a server asks a runner to make for a session."""

    repo: Repo
    runtime: Runtime = Runtime()
    providers: tuple[SnapshotProvider, ...] = ()
    setup: str | None = None
    """A shell command that is run in the new workspace before the agent is."""
    scope: str = "default"
    """Whose order it is; what was fetched or set up is shared inside a scope only."""
    grant: Grant | None = None
    """For whom, and within what; orders that an earlier version has made lack it."""

    @property
    def granted(self) -> Grant:
        """The same for every order."""
        return self.grant or Grant(project=self.scope, runtime=self.runtime)


class CreatedWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner tells about a workspace it has made."""

    workspace: Workspace
    setup: SetupOutcome | None = None
    """Whether its setup command was run, or an earlier result of it was there."""
    resources_ignored: bool = False
    """Limits were ordered, and the runtime has none."""


class FrozenState(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner tells about a snapshot it has made."""

    id: str
    workspace: str
    tree: str
    memory_kept: bool = False
    too_large: tuple[LargeFile, ...] = ()


class MachinePath(msgspec.Struct, frozen=True, kw_only=True):
    """Where something on a runner's machine really is, or would be."""

    folder: str
    """The nearest folder above it that is there."""
    path: str
    """The rest, below that folder."""

    @property
    def whole(self) -> str:
        """The absolute path."""
        return f"{self.folder.rstrip('/')}/{self.path}".rstrip("/") or "/"


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a file; `size` is that of the whole file."""

    path: str
    data: bytes
    offset: int
    size: int


class FileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for in the files of a workspace."""

    text: str
    name: str = "*"
    ignore_case: bool = False
    matches: int = 200


class OwnStep(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent changed between two snapshots of a person's own checkout."""

    old: str
    new: str
    paths: tuple[str, ...] | None = None
    """Only these files; the person may have changed others meanwhile."""


class DeliveryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a server asks a runner to hand over, everything filled in."""

    workspace: str
    snapshot: str
    mode: DeliveryMode
    branch: str
    title: str
    body: str
    message: str
    target: str | None = None
    draft: bool = False
    credential: RepoCredential | None = None
    forge: ForgeKind | None = None
    api_url: str | None = None
    folder: str | None = None
    """The checkout or the folder that a local delivery goes to."""
    new_words: tuple[Literal["title", "body"], ...] = ()
    """What of a pull request that is open already gets these words; the rest stays as people have it there."""
    steps: tuple[OwnStep, ...] | None = None
    """In a person's own checkout: what is the agent's. Elsewhere all is."""


class PullRequestOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request to look at, or to merge."""

    url: str
    """Of the repository."""
    number: int
    credential: RepoCredential | None = None
    forge: ForgeKind | None = None
    api_url: str | None = None
    merge: bool = False


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed over."""

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
