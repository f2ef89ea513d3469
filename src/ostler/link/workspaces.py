"""What a server asks of the workspaces of a runner; the server knows them by their ids only."""

from collections.abc import AsyncIterable, Callable
from typing import Protocol

from ostler.link.commands import Commands
from ostler.link.luggage import Download, Luggage
from ostler.wire.provisioning import (
    CreatedWorkspace,
    DeliveryOrder,
    DeliveryResult,
    FileContent,
    FileQuery,
    FrozenState,
    MachinePath,
    PullRequestOrder,
    WorkspaceOrder,
)
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspace_events import PullRequestData
from ostler.wire.workspaces import (
    ArchiveForm,
    ChangedBy,
    Deliver,
    Devcontainer,
    Difference,
    FileEntry,
    FileListing,
    FileMatches,
    FilePaths,
    FolderListing,
    GitRefs,
    MadeRepository,
    ProviderVerdict,
    Repo,
    Upload,
    Workspace,
)

Progress = Callable[[str], None]
"""Hears lines such as `Receiving objects: 45%` on the event loop; each line is a message that needs no answer."""


EXACTLY = "/"
"""Before the absolute path of a folder: that folder itself as a place; no link is followed on the way or inside."""


class Files(Protocol):
    """The files of workspaces. `place` is a workspace, or a folder: an agent's, or exactly one of the machine."""

    async def list(self, place: str, path: str, limit: int) -> FileListing:
        """What is in a folder."""

    async def stat(self, place: str, path: str) -> FileEntry:
        """What a name is."""

    async def read(self, place: str, path: str, *, offset: int, length: int | None) -> FileContent:
        """A piece of a file."""

    async def write(self, workspace: str, path: str, data: bytes, *, executable: bool | None) -> FileEntry:
        """Write a file whole or not at all."""

    async def remove(self, place: str, path: str, *, recursive: bool = False) -> None:
        """Remove a file or a folder, which must be empty unless all below it goes too."""

    async def make_folder(self, place: str, path: str) -> FileEntry:
        """Make a folder and those above it."""

    async def move(self, place: str, path: str, to: str, *, overwrite: bool = False) -> FileEntry:
        """Give a file or folder another name; raises PathTaken if something is there that is not to go."""

    async def unpack(self, place: str, path: str, upload: str, limit: int) -> FilePaths:
        """Lay an uploaded archive out in a folder, over what is there; the files that it had."""

    async def search(self, place: str, query: FileQuery) -> FileMatches:
        """Look for a text."""

    async def paths(self, place: str, limit: int) -> FilePaths:
        """The files below a folder, but for those that people hardly mean."""

    async def archive(self, workspace: str, form: ArchiveForm) -> Download:
        """The whole tree."""

    async def diff(self, workspace: str, *, old: str, new: str, context: int, text: bool) -> Difference:
        """What differs between two states: snapshot ids, `base` or `now`."""

    async def patch(self, workspace: str, *, old: str, new: str) -> Download:
        """The difference as a patch for `git apply`, and its size."""


class Workspaces(Protocol):
    """All workspaces of one runner. Errors are classes of base/errors/."""

    @property
    def files(self) -> Files:
        """Their files."""

    @property
    def programs(self) -> Commands:
        """What people start on the machine beside agents."""

    @property
    def luggage(self) -> Luggage:
        """What travels with sessions that go on elsewhere."""

    async def check(self, order: WorkspaceOrder, delivery: Deliver | None = None) -> None:
        """Raise if this order could never be carried out here, or its result not be handed over; makes nothing."""

    async def check_folder(self, path: str) -> bool:
        """Raise RepositoryRefused unless this folder may be used as it is; whether it is in a git checkout."""

    async def allowed_path(self, path: str, folders: tuple[str, ...], *, whole: bool = False) -> MachinePath:
        """Where an absolute path really leads, whether something is there or not.

        Raises PathRefused unless that is below one of these folders or one that may be used; with `whole` for one that
        cannot go or move as a whole.
        """

    async def existing_files(self, paths: tuple[str, ...], folders: tuple[str, ...]) -> set[str]:
        """Those of these absolute paths that name a file below one of these folders, or below one that may be used."""

    async def folders(self, path: str, limit: int) -> FolderListing:
        """The folders below one that may be used; of an empty path, where one may begin."""

    async def create(self, order: WorkspaceOrder, progress: Progress) -> CreatedWorkspace:
        """Make a workspace and set it up; whoever cancels this leaves nothing behind."""

    async def get(self, workspace: str) -> Workspace:
        """One workspace; raises WorkspaceLost if its files are gone."""

    async def entry(self, workspace: str) -> tuple[str, ...]:
        """The words before a command that run it inside the workspace."""

    async def devcontainer(self, workspace: str) -> Devcontainer | None:
        """The container it is used in, if there is one."""

    async def destroy(self, workspace: str) -> None:
        """Remove a workspace, its snapshots and its container; one that is gone is fine."""

    def rest(self, workspace: str) -> None:
        """Give back what a workspace needs only while it is in use, such as its mount; returns at once."""

    async def size(self, workspace: str) -> int:
        """The bytes that it and its snapshots take on disk."""

    async def forget(self, session: str, *, keeps_folder: bool = False) -> None:
        """Remove the home and the folder of a session whose agent has ended; returns when they are out of the way.

        With `keeps_folder` the folder stays: others work in it.
        """

    async def keep_only(self, workspaces: set[str], sessions: set[str]) -> None:
        """Remove all that a killed server left and no session knows; called before anything else."""

    async def snapshot(
        self, workspace: str, note: str, *, agent: str, session: str, changed_by: ChangedBy = "agent"
    ) -> FrozenState:
        """Keep the state of the files, and with it the agent's memory as far as it lies in the session's home."""

    async def snapshot_of_person(self, workspace: str, note: str, *, since: str) -> FrozenState | None:
        """Keep the state of the files alone, if a person has changed them since a tree."""

    async def restore(self, workspace: str, snapshot: str, *, session: str, with_memory: bool) -> None:
        """Make files and memory what they were; the agent must have ended."""

    async def take_back(
        self, workspace: str, *, old: str, new: str, paths: tuple[str, ...], lines: tuple[int, ...] | None = None
    ) -> tuple[str, ...]:
        """Take back what was changed in these files, or these lines, between two snapshots, unless it changed since."""

    async def apply_part(
        self, workspace: str, *, folder: str, paths: tuple[str, ...], lines: tuple[int, ...] | None = None
    ) -> tuple[str, ...]:
        """Bring these files, or these lines of one, into the folder that a workspace was made from."""

    async def fork(self, snapshot: str, *, session: str, with_memory: bool) -> Workspace:
        """A new workspace that begins as a snapshot, and for a new session a home with the memory of that moment."""

    async def deliver(self, order: DeliveryOrder) -> DeliveryResult:
        """Hand a snapshot over; doing it twice gives one branch and one pull request."""

    async def pull_request(self, order: PullRequestOrder) -> PullRequestData:
        """A pull request as its forge shows it, merged first if that is wanted; raises MergeRefused."""

    async def make_repository(self, path: str) -> MadeRepository:
        """Make a folder without git a repository, with a commit of what is there."""

    async def refs(self, repo: Repo) -> GitRefs:
        """The branches and tags of a repository, as they were a moment ago at most."""

    async def upload(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Take in an archive; each chunk is a message of its own."""

    async def providers(self) -> tuple[ProviderVerdict, ...]:
        """Which ways to make workspaces work here, best first."""

    async def runtimes(self) -> tuple[RuntimeInfo, ...]:
        """What agents can run in here, as far as the operator allows it."""
