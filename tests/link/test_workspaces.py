"""The contract of the workspaces of a runner, in memory and over a link of bytes."""

import asyncio
import io
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from ostler.base.errors import (
    FileMissing,
    InvalidRequest,
    NothingToDeliver,
    OstlerError,
    RepositoryRefused,
    RuntimeRefused,
    TooLarge,
    WorkspaceLost,
)
from ostler.link.luggage import Download
from ostler.link.workspaces import Workspaces
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.memories import Memories
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.session_folders import SessionFolders
from ostler.runner.setups import Setups
from ostler.runner.starting.starter import Starter
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.provisioning import DeliveryOrder, FileQuery, WorkspaceOrder
from ostler.wire.workspaces import Deliver, Repo, Resources, Runtime, Workspace
from tests.support.loopback import over_socket, workspaces_over_loopback
from tests.support.patience import until
from tests.support.places import git, make_repository

Linked = Callable[[Workspaces], AbstractAsyncContextManager[Workspaces]]


@asynccontextmanager
async def in_memory(workspaces: Workspaces) -> AsyncIterator[Workspaces]:
    yield workspaces


class NoAgents:
    """A runner that is asked for nothing but its workspaces."""

    async def detach(self) -> None:
        return


@asynccontextmanager
async def by_websocket(workspaces: Workspaces) -> AsyncIterator[Workspaces]:
    async with over_socket(NoAgents(), workspaces) as server:  # type: ignore[arg-type]  # all that is asked of it
        yield server.workspaces


@pytest.fixture(params=[in_memory, workspaces_over_loopback, by_websocket], ids=["memory", "loopback", "websocket"])
def linked(request: pytest.FixtureRequest) -> Linked:
    chosen: Linked = request.param
    return chosen


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture
async def workspaces(linked: Linked, tmp_path: Path, repository: Path) -> AsyncIterator[Workspaces]:
    policy = Policy(folders=(str(repository.parent),))
    options = Options(policy=policy, max_upload_bytes=2**20)
    library = await WorkspaceLibrary.open(tmp_path / "state", environ=os.environ, options=options)
    starter = Starter(Runtimes([LocalRuntime(library, ("local",), os.environ)], ("local",)))
    local = LocalWorkspaces(
        library,
        policy=policy,
        starter=starter,
        memories=Memories(tmp_path / "memories"),
        sessions=SessionFolders(tmp_path),
        setups=Setups(library, tmp_path / "setups", starter, environ=os.environ, seconds=60),
    )
    async with linked(local) as seen:
        yield seen
    await local.keep_only(set(), set())
    await local.close()


def order_of(repository: Path, setup: str | None = None, **runtime: object) -> WorkspaceOrder:
    repo = Repo(url=str(repository), branch="main")
    return WorkspaceOrder(repo=repo, setup=setup, runtime=Runtime(**runtime))  # type: ignore[arg-type]


async def made(workspaces: Workspaces, repository: Path) -> Workspace:
    return (await workspaces.create(order_of(repository), lambda _: None)).workspace


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


class Held:
    """Bytes that hold something open until they are closed."""

    def __init__(self) -> None:
        self.is_open = True

    def __aiter__(self) -> "Held":
        return self

    async def __anext__(self) -> bytes:
        return b"more"

    async def aclose(self) -> None:
        self.is_open = False


class Archives:
    """Workspaces that are asked for nothing but archives; one named `late` comes also to who takes the call back."""

    def __init__(self) -> None:
        self.given: list[Held] = []
        self.files = self
        self.is_asked = False

    async def archive(self, workspace: str, form: str) -> Download:
        if workspace == "late":
            self.is_asked = True
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        self.given.append(Held())
        return Download(pieces=self.given[-1])


async def test_who_goes_away_before_or_while_bytes_come_leaves_nothing_open() -> None:
    archives = Archives()
    async with workspaces_over_loopback(archives) as remote:  # type: ignore[arg-type]  # all that is asked of it
        await remote.files.archive("never begun", "tar")
        await until(lambda: [each.is_open for each in archives.given] == [False])
        begun = await remote.files.archive("begun", "tar")
        assert await anext(begun.pieces) == b"more"
        del begun
        await until(lambda: [each.is_open for each in archives.given] == [False] * 2)
        call = asyncio.create_task(remote.files.archive("late", "tar"))
        await until(lambda: archives.is_asked)
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: [each.is_open for each in archives.given] == [False] * 3)


async def test_a_workspace_is_made_and_its_progress_is_heard_in_order(workspaces: Workspaces, repository: Path) -> None:
    lines: list[str] = []
    order = order_of(repository, "for n in 1 2 3; do echo $n; done", resources=Resources(cpu=1.0))
    await workspaces.check(order, Deliver(mode="patch"))
    done = await workspaces.create(order, lines.append)
    assert [line for line in lines if line.startswith("Setup")] == ["Setup: 1", "Setup: 2", "Setup: 3"]
    assert (done.setup, done.resources_ignored, done.workspace.branch) == ("run", True, "main")
    assert await workspaces.get(done.workspace.id) == done.workspace
    assert await workspaces.devcontainer(done.workspace.id) is None
    assert isinstance(await workspaces.entry(done.workspace.id), tuple)
    assert await workspaces.size(done.workspace.id) > 0


async def test_files_are_written_read_found_and_removed(workspaces: Workspaces, repository: Path) -> None:
    name = (await made(workspaces, repository)).id
    data = bytes(range(256)) * 10
    entry = await workspaces.files.write(name, "new/data.bin", data, executable=True)
    assert (entry.size, entry.executable) == (2560, True)
    assert await workspaces.files.stat(name, "new/data.bin") == entry
    listing = await workspaces.files.list(name, "new", 10)
    assert (listing.entries, listing.truncated) == ((entry,), False)
    piece = await workspaces.files.read(name, "new/data.bin", offset=250, length=10)
    assert (piece.data, piece.size) == (data[250:260], 2560)
    found = await workspaces.files.search(name, FileQuery(text="print", name="*.py"))
    assert [(match.path, match.line) for match in found.matches] == [("src/main.py", 1), ("src/main.py", 2)]
    paths = await workspaces.files.paths(name, 100)
    assert {"src/main.py", "new/data.bin"} <= set(paths.paths)
    await workspaces.files.remove(name, "new/data.bin")
    with pytest.raises(FileMissing):
        await workspaces.files.read(name, "new/data.bin", offset=0, length=None)


async def test_states_are_kept_compared_restored_and_forked(
    workspaces: Workspaces, repository: Path, tmp_path: Path
) -> None:
    name, home = (await made(workspaces, repository)).id, tmp_path / "sessions" / "ses_1" / "home"
    home.mkdir(parents=True)
    (home / "memory").write_text("one")
    first = await workspaces.snapshot(name, "first", agent="mock", session="ses_1")
    assert (first.workspace, first.memory_kept) == (name, True)
    await workspaces.files.write(name, "README.md", b"changed\n", executable=None)
    (home / "memory").write_text("two")
    changed = await workspaces.files.diff(name, old=first.id, new="now", context=0, text=False)
    assert [(file.path, file.status, file.diff) for file in changed.files] == [("README.md", "modified", "")]
    patch = await workspaces.files.patch(name, old="base", new="now")
    text = await joined(patch.pieces)
    assert (len(text), b"+changed" in text) == (patch.size, True)
    other = await workspaces.fork(first.id, session="ses_2", with_memory=True)
    told = (tmp_path / "sessions" / "ses_2" / "home" / "memory").read_text()
    assert (other.forked_from, told) == (first.id, "one")
    await workspaces.restore(name, first.id, session="ses_1", with_memory=True)
    assert (home / "memory").read_text() == "one"
    readme = await workspaces.files.read(name, "README.md", offset=0, length=None)
    assert readme.data.startswith(b"Hello")
    workspaces.rest(name)


async def test_an_archive_comes_in_pieces_and_may_be_left_in_the_middle(
    workspaces: Workspaces, repository: Path
) -> None:
    name = (await made(workspaces, repository)).id
    await workspaces.files.write(name, "big.bin", os.urandom(3 * 2**20), executable=None)
    left = (await workspaces.files.archive(name, "tar")).pieces
    assert await anext(left)
    await left.aclose()  # type: ignore[attr-defined]  # a generator at both ends
    archive = await joined((await workspaces.files.archive(name, "tar")).pieces)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert {"big.bin", "README.md"} <= set(tar.getnames())


async def test_an_upload_is_sent_in_pieces_and_refused_in_time(workspaces: Workspaces) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        entry = tarfile.TarInfo("a.txt")
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"text"))
    sent = 0

    async def pieces(data: bytes, times: int) -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(times):
            sent += 1
            yield data

    upload = await workspaces.upload(pieces(file.getvalue(), 1))
    order = WorkspaceOrder(repo=Repo(mode="upload", upload=upload.id))
    name = (await workspaces.create(order, lambda _: None)).workspace.id
    assert (await workspaces.files.read(name, "a.txt", offset=0, length=None)).data == b"text"
    sent = 0
    with pytest.raises(TooLarge):
        await workspaces.upload(pieces(bytes(2**18), 1000))
    assert sent < 10


async def test_what_was_done_is_handed_over(workspaces: Workspaces, repository: Path) -> None:
    name = (await made(workspaces, repository)).id
    state = await workspaces.snapshot(name, "nothing yet", agent="mock", session="ses_0")
    order = DeliveryOrder(workspace=name, snapshot=state.id, mode="patch", branch="b", title="t", body="", message="m")
    with pytest.raises(NothingToDeliver):
        await workspaces.deliver(order)
    await workspaces.files.write(name, "new.txt", b"new\n", executable=None)
    state = await workspaces.snapshot(name, "done", agent="mock", session="ses_0")
    done = await workspaces.deliver(msgspec.structs.replace(order, snapshot=state.id))
    assert done.size
    refs = await workspaces.refs(Repo(url=str(repository)))
    assert (refs.default_branch, refs.refs[0].commit) == ("main", git(repository, "rev-parse", "HEAD"))


async def test_errors_arrive_as_they_were_raised(workspaces: Workspaces, repository: Path, tmp_path: Path) -> None:
    name = (await made(workspaces, repository)).id
    wanted: list[tuple[type[OstlerError], object]] = [
        (RuntimeRefused, workspaces.check(order_of(repository, type="devcontainer"))),
        (RepositoryRefused, workspaces.check(order_of(tmp_path))),
        (RepositoryRefused, workspaces.check_folder(str(tmp_path))),
        (WorkspaceLost, workspaces.get("wsp_none")),
        (InvalidRequest, workspaces.files.read(name, "../../x", offset=0, length=None)),
    ]
    for kind, work in wanted:
        with pytest.raises(OstlerError) as caught:
            await work  # type: ignore[misc]  # each is one call
        assert (caught.type, "{" in str(caught.value)) == (kind, False)


async def test_a_creation_that_is_given_up_leaves_nothing(workspaces: Workspaces, repository: Path) -> None:
    begun = asyncio.Event()
    order = order_of(repository, "echo begun; sleep 600")
    making = asyncio.create_task(workspaces.create(order, lambda line: begun.set() if "begun" in line else None))
    await asyncio.wait_for(begun.wait(), 60)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making


async def test_a_workspace_that_is_destroyed_or_not_wanted_is_gone(workspaces: Workspaces, repository: Path) -> None:
    first, second, third = [(await made(workspaces, repository)).id for _ in range(3)]
    await workspaces.destroy(first)
    await workspaces.destroy(first)
    await workspaces.keep_only({second}, set())
    assert (await workspaces.get(second)).id == second
    for name in (first, third):
        with pytest.raises(WorkspaceLost):
            await workspaces.get(name)


async def test_the_folders_of_a_session_are_gone_when_it_is_forgotten_or_was_never_there(
    workspaces: Workspaces, tmp_path: Path
) -> None:
    for name in ("ses_1", "ses_2", "ses_3"):
        (tmp_path / "sessions" / name / "home").mkdir(parents=True)
    left = tmp_path / "trash" / "ses_0"
    left.mkdir(parents=True)
    await workspaces.forget("ses_1")
    await workspaces.forget("ses_1")
    await workspaces.keep_only(set(), {"ses_2"})
    assert [folder.name for folder in (tmp_path / "sessions").iterdir()] == ["ses_2"]
    await until(lambda: not list(left.parent.iterdir()))


async def test_a_runner_knows_which_files_are_there(workspaces: Workspaces, tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.touch()
    asked = (str(there), str(tmp_path), str(tmp_path / "gone"), "there.txt", "a\0b", "/" + "x" * 5000, "")
    assert await workspaces.existing_files(asked, (str(tmp_path),)) == {str(there)}


async def test_a_runner_says_what_it_can_do(workspaces: Workspaces) -> None:
    assert [(offer.type, offer.available) for offer in await workspaces.runtimes()] == [("local", True)]
    verdicts = await workspaces.providers()
    assert all((verdict.why_not is None) == verdict.works for verdict in verdicts)
