"""The workspaces of this machine as the server sees them: implements link.workspaces over the workspace library."""

import asyncio
import time
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import assert_never

from msgspec.structs import replace

from ostler.base.errors import OstlerError, WorkspaceNotFound
from ostler.base.paths import is_file
from ostler.base.undo import async_undone_by
from ostler.link.workspaces import Progress
from ostler.runner.commands.service import LocalCommands
from ostler.runner.delivery.checks import check_delivery
from ostler.runner.luggage import LocalLuggage
from ostler.runner.runtimes.memories import Memories
from ostler.runner.session_folders import SessionFolders
from ostler.runner.setups import Setups
from ostler.runner.starting.starter import Starter
from ostler.runner.workspaces.git import Git
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import (
    Credential,
    EmptySource,
    FolderSource,
    GitSource,
    Order,
    Source,
    UploadSource,
)
from ostler.runner.workspaces.repositories.folders import list_folders
from ostler.runner.workspaces.repositories.new_repositories import make_repository
from ostler.runner.workspaces.repositories.own_checkouts import find_checkout
from ostler.runner.workspaces.repositories.policy import (
    Policy,
    allowed_folder,
    allowed_path,
    checked_commit,
    checked_ref,
    is_below,
    reachable,
)
from ostler.runner.workspaces.taking_back import take_back
from ostler.wire import workspaces as wire
from ostler.wire.provisioning import (
    CreatedWorkspace,
    DeliveryOrder,
    DeliveryResult,
    FrozenState,
    MachinePath,
    PullRequestOrder,
    SetupOutcome,
    WorkspaceOrder,
)
from ostler.wire.running import AgentSpec
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspace_events import PullRequestData

_REFS_SECONDS = 60.0
_MOST_REFS = 100


class LocalWorkspaces:
    """Implements link.workspaces.Workspaces; made by `app.py` from a library that is open."""

    def __init__(
        self,
        library: WorkspaceLibrary,
        *,
        policy: Policy,
        starter: Starter,
        memories: Memories,
        setups: Setups,
        sessions: SessionFolders,
        remote_memory: frozenset[str] = frozenset(),
    ) -> None:
        """`remote_memory` names agents whose memory does not lie in their homes, so that a copy is none of it."""
        self._library = library
        self.files = library.files
        self.luggage = LocalLuggage(library, memories, sessions)
        self.programs = LocalCommands(starter, sessions)
        self._policy = policy
        self.starter = starter
        self._runtimes = starter.runtimes
        self._memories = memories
        self._setups = setups
        self._sessions = sessions
        self._remote_memory = remote_memory
        self._refs: dict[str, tuple[float, wire.GitRefs]] = {}

    # Making and removing

    async def check(self, order: WorkspaceOrder, delivery: wire.Deliver | None = None) -> None:
        """Hold an order, and how its result is handed over, against the policy."""
        repo, runtime = order.repo, self._runtimes.ordered(order.granted.runtime.type)
        await asyncio.to_thread(_check_repo, order.repo, self._policy)
        if order.repo.mode == "checkout":
            folder = await asyncio.to_thread(allowed_folder, order.repo.path or "", self._policy, field="repo.path")
            found = await asyncio.to_thread(find_checkout, self._library.storage.git, folder)
            await asyncio.to_thread(allowed_folder, found.top, self._policy, field="repo.path")
            repo = replace(repo, url=found.url)
        if delivery is not None:
            await asyncio.to_thread(check_delivery, repo, delivery, self._policy)
        await runtime.check()

    async def check_folder(self, path: str) -> bool:
        """Hold a folder against the policy, and see whether it is in a checkout."""
        return await asyncio.to_thread(_is_in_checkout, self._library.storage.git, path, self._policy)

    async def allowed_path(self, path: str, folders: tuple[str, ...], *, whole: bool = False) -> MachinePath:
        """Hold a path against the policy."""
        return await asyncio.to_thread(allowed_path, path, self._policy, folders, whole=whole)

    async def existing_files(self, paths: tuple[str, ...], folders: tuple[str, ...]) -> set[str]:
        """Those that name a file which clients may name."""
        return await asyncio.to_thread(
            lambda: {path for path in paths if is_file(path) and is_below(path, self._policy, folders)}
        )

    async def folders(self, path: str, limit: int) -> wire.FolderListing:
        """The folders that people may choose."""
        return await asyncio.to_thread(list_folders, path, self._policy, limit)

    async def create(self, order: WorkspaceOrder, progress: Progress) -> CreatedWorkspace:
        """Make a workspace, from the kept result of its setup if there is one."""
        grant = order.granted
        runtime = self._runtimes.ordered(grant.runtime.type)
        source = _source(order.repo)
        wanted = Order(source=source, providers=order.providers, visible=runtime.needs_visible, scope=grant.project)
        outcome: SetupOutcome | None = None
        if order.setup is None:
            made = await self._library.create(wanted, progress=progress)
        else:
            made, outcome = await self._setups.create(wanted, grant, order.setup, progress)
        async with async_undone_by(lambda: self.destroy(made.id)):
            await runtime.prepare(made, grant.runtime, progress)
        ignored = grant.runtime.resources is not None and not runtime.applies_limits
        return CreatedWorkspace(workspace=made, setup=outcome, resources_ignored=ignored)

    async def get(self, workspace: str) -> wire.Workspace:
        """One workspace."""
        return self._library.get(workspace)

    async def entry(self, workspace: str) -> tuple[str, ...]:
        """The words before a command."""
        return (await self._library.entry(workspace)).prefix

    async def devcontainer(self, workspace: str) -> wire.Devcontainer | None:
        """The container that its agent runs in."""
        return self._runtimes.of(workspace).container(workspace)

    async def destroy(self, workspace: str) -> None:
        """Remove a workspace; it may be gone."""
        await self._runtimes.of(workspace).remove(workspace)
        with suppress(WorkspaceNotFound):
            await self._library.destroy(workspace)
        await asyncio.to_thread(self._memories.forget, workspace)

    def rest(self, workspace: str) -> None:
        """Unmount it until it is needed."""
        self._library.rest(workspace)

    async def size(self, workspace: str) -> int:
        """What it takes on disk."""
        return await self._library.threads.run(lambda _: self._library.storage.size(workspace))

    async def forget(self, session: str, *, keeps_folder: bool = False) -> None:
        """Remove the folders of a session."""
        if keeps_folder:
            self._sessions.forget_home(session)
        else:
            self._sessions.forget(session)

    async def keep_only(self, workspaces: set[str], sessions: set[str]) -> None:
        """Remove what no session and no kept setup has."""
        await asyncio.to_thread(self._sessions.keep_only, sessions)
        needed = workspaces | self._setups.workspaces()
        for found in self._library.all():
            if found.id not in needed:
                await self.destroy(found.id)
        await asyncio.to_thread(self._memories.keep_only, needed)

    def inside(self, spec: AgentSpec) -> AgentSpec:
        """What the agent is told of its folder: in a container that has another name."""
        container = self._runtimes.of(spec.workspace).container(spec.workspace) if spec.workspace is not None else None
        return spec if container is None else replace(spec, cwd=container.workspace_folder)

    # Snapshots

    async def snapshot(
        self, workspace: str, note: str, *, agent: str, session: str, changed_by: wire.ChangedBy = "agent"
    ) -> FrozenState:
        """Keep files and memory."""
        made = await self._library.snapshot(workspace, note, changed_by)
        saved = False
        if agent not in self._remote_memory:
            saved = await asyncio.to_thread(self._memories.keep, workspace, made.id, self._sessions.home(session))
        return FrozenState(id=made.id, workspace=workspace, tree=made.tree, memory_kept=saved, too_large=made.too_large)

    async def snapshot_of_person(self, workspace: str, note: str, *, since: str) -> FrozenState | None:
        """Keep files alone."""
        made = await self._library.snapshot_if_changed(workspace, note, since)
        if made is None:
            return None
        return FrozenState(id=made.id, workspace=workspace, tree=made.tree, too_large=made.too_large)

    async def restore(self, workspace: str, snapshot: str, *, session: str, with_memory: bool) -> None:
        """Bring files and memory back."""
        await self._library.restore(workspace, snapshot)
        if with_memory:
            origin = self._library.storage.owner_of(snapshot)
            home = self._sessions.home(session)
            await asyncio.to_thread(self._memories.bring_back, origin, snapshot, home, into=workspace)

    async def take_back(
        self, workspace: str, *, old: str, new: str, paths: tuple[str, ...], lines: tuple[int, ...] | None = None
    ) -> tuple[str, ...]:
        """Take back what lies between two states."""
        states = self._library.states
        return await self._library.threads.alone(
            workspace, lambda: take_back(states, workspace, old, new, paths, lines)
        )

    async def apply_part(
        self, workspace: str, *, folder: str, paths: tuple[str, ...], lines: tuple[int, ...] | None = None
    ) -> tuple[str, ...]:
        """Bring some of it where it came from."""
        from ostler.runner.delivery.checkouts import apply_part  # noqa: PLC0415 - with the rest of delivery, on use

        states = self._library.states
        return await self._library.threads.alone(workspace, lambda: apply_part(states, workspace, folder, paths, lines))

    async def fork(self, snapshot: str, *, session: str, with_memory: bool) -> wire.Workspace:
        """A new workspace from a snapshot."""
        made = await self._library.fork(snapshot)
        origin = self._library.storage.owner_of(snapshot)
        self._runtimes.of(origin).copy(origin, made.id)
        if with_memory:
            home = self._sessions.home(session)
            await asyncio.to_thread(self._memories.bring_back, origin, snapshot, home, into=made.id)
        return made

    # Delivery

    async def deliver(self, order: DeliveryOrder) -> DeliveryResult:
        """Hand a snapshot over."""
        from ostler.runner.delivery.orders import carry_out  # noqa: PLC0415 - its HTTP client would slow every start

        return await carry_out(self._library, self._policy, order)

    async def pull_request(self, order: PullRequestOrder) -> PullRequestData:
        """Ask the forge."""
        from ostler.runner.delivery.orders import look_at  # noqa: PLC0415 - its HTTP client would slow every start

        return await look_at(self._policy, order)

    # What there is

    async def make_repository(self, path: str) -> wire.MadeRepository:
        """Make a folder a repository."""
        folder = await asyncio.to_thread(allowed_folder, path, self._policy, field="cwd")
        return await asyncio.to_thread(
            make_repository, self._library.storage.git, self._library.storage.scratch, folder
        )

    async def refs(self, repo: wire.Repo) -> wire.GitRefs:
        """Branches and tags; those asked for without a credential are remembered for a minute."""
        url = repo.url or ""
        known = self._refs.get(url)
        if repo.credential is None and known is not None and time.monotonic() - known[0] < _REFS_SECONDS:
            return known[1]
        found = await self._library.refs(GitSource(url=url, credential=_credential(repo)))
        if repo.credential is None:
            self._refs[url] = time.monotonic(), found
            if len(self._refs) > _MOST_REFS:
                del self._refs[next(iter(self._refs))]
        return found

    async def upload(self, chunks: AsyncIterable[bytes]) -> wire.Upload:
        """Take in an archive."""
        return await self._library.storage.uploads.receive(chunks)

    async def providers(self) -> tuple[wire.ProviderVerdict, ...]:
        """Which ways work here."""
        return tuple(await self._library.threads.run(lambda _: self._library.storage.providers.verdicts()))

    async def runtimes(self) -> tuple[RuntimeInfo, ...]:
        """What agents can run in."""
        return await self._runtimes.describe()

    async def close(self) -> None:
        """Let go of everything; workspaces stay."""
        await self.programs.close()
        await self._setups.close()
        self._sessions.close()
        with suppress(OstlerError):
            await self._library.close()


def _is_in_checkout(git: Git, path: str, policy: Policy) -> bool:
    folder = allowed_folder(path, policy, field="cwd")
    try:
        allowed_folder(find_checkout(git, folder).top, policy)
    except OstlerError:  # a folder like any other
        return False
    return True


def _check_repo(repo: wire.Repo, policy: Policy) -> None:
    match repo.mode:
        case "git":
            reachable(repo.url or "", policy)
            if repo.branch is not None:
                checked_ref(repo.branch, field="repo.branch")
            if repo.commit is not None:
                checked_commit(repo.commit)
        case "folder" | "checkout":
            allowed_folder(repo.path or "", policy, field="repo.path")
        case "upload" | "none":
            pass
        case _:
            assert_never(repo.mode)


def _source(repo: wire.Repo) -> Source:
    match repo.mode:
        case "git":
            return GitSource(
                url=repo.url or "",
                branch=repo.branch,
                commit=repo.commit,
                credential=_credential(repo),
                submodules=repo.submodules,
            )
        case "upload":
            return UploadSource(upload=repo.upload or "")
        case "folder":
            return FolderSource(path=repo.path or "")
        case "checkout":
            return FolderSource(path=repo.path or "", in_place=True)
        case "none":
            return EmptySource()
        case _:
            assert_never(repo.mode)


def _credential(given: wire.Repo) -> Credential | None:
    found = given.credential
    return Credential(token=found.token, user=found.user) if found is not None else None
