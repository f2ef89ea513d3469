"""The contract of runtimes: every one of them is prepared, entered, copied and removed in the same way."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from ostler.base.errors import RuntimeRefused, WorkspaceNotFound
from ostler.runner.runtimes.devcontainer import DevcontainerRuntime
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.runtimes.runtime import Runtime, Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import asked
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import EmptySource, Order
from ostler.wire import workspaces as wire
from ostler.wire.grants import Grant
from ostler.wire.workspaces import Workspace
from tests.support.real_engine import IMAGE, import_image, install_engine, podman

_ALL: tuple[wire.RuntimeType, ...] = ("local", "devcontainer", "disabled")
_FILES = {"a.txt": "one\n", ".devcontainer.json": f'{{"image": "{IMAGE}"}}'}


class Tried(msgspec.Struct):
    """A runtime, workspaces for it, and how many things of it are left on the machine."""

    runtime: Runtime
    library: WorkspaceLibrary
    left: Callable[[], str]

    async def prepared(self) -> Workspace:
        """A workspace that is ready for agents."""
        order = Order(source=EmptySource(files=_FILES), visible=self.runtime.needs_visible)
        made = await self.library.create(order)
        await self.runtime.prepare(made, wire.Runtime(type=self.runtime.types[0]), lambda _: None)
        return made

    async def run(self, workspace: Workspace, script: str) -> str:
        """What a shell says that is launched as an agent would be."""
        home = Path(workspace.path).parents[3] / "home"
        home.mkdir(exist_ok=True)
        argv = ("/bin/sh", "-ec", script)
        start = Start(grant=Grant(), argv=argv, home=str(home), cwd=workspace.path, workspace=workspace.id)
        code, output = await Starter(Runtimes([self.runtime], _ALL)).start(start, asked(120))
        assert code == 0, output
        return output.decode()


@asynccontextmanager
async def _local(root: Path) -> AsyncIterator[Tried]:
    library = await WorkspaceLibrary.open(root / "workspaces", environ=os.environ)
    yield Tried(LocalRuntime(library, _ALL, os.environ), library, lambda: "")
    await library.close()


@asynccontextmanager
async def _devcontainer(root: Path) -> AsyncIterator[Tried]:
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:  # podman takes no long names for its folders
        engine = install_engine(Path(short) / "podman")
        import_image(engine)
        environ = {**os.environ, "PATH": f"{engine}{os.pathsep}{os.environ['PATH']}"}
        library = await WorkspaceLibrary.open(root / "workspaces", environ=environ)
        runtime = DevcontainerRuntime(library, root / "containers", environ=environ, programs=())
        yield Tried(runtime, library, lambda: podman(engine, "ps", "--all", "--quiet"))
        await library.close()


Having = Callable[[Path], AbstractAsyncContextManager[Tried]]
_RUNTIMES = [
    pytest.param(_local, id="local"),
    pytest.param(_devcontainer, id="devcontainer", marks=pytest.mark.root),
]


@pytest.mark.parametrize("having", _RUNTIMES)
async def test_an_agent_works_in_the_files_of_its_workspace_and_a_fork_runs_in_the_same_way(
    having: Having, tmp_path: Path
) -> None:
    async with having(tmp_path) as tried:
        await tried.runtime.check()
        workspace = await tried.prepared()
        assert tried.runtime.has(workspace.id)
        assert await tried.run(workspace, "read word < a.txt; echo $word > b.txt; echo $word") == "one\n"
        state = await tried.library.snapshot(workspace.id, "after")
        fork = await tried.library.fork(state.id)
        tried.runtime.copy(workspace.id, fork.id)
        assert await tried.run(fork, "read word < b.txt; echo $word") == "one\n"
        changed = await tried.library.files.diff(workspace.id)
        assert [file.path for file in changed.files] == ["b.txt"]
        for each in (workspace, fork):
            await tried.runtime.remove(each.id)
            await tried.runtime.remove(each.id)
            await tried.library.destroy(each.id)
        assert tried.left() == ""


@pytest.mark.parametrize("having", _RUNTIMES)
async def test_a_runtime_says_what_it_offers(having: Having, tmp_path: Path) -> None:
    async with having(tmp_path) as tried:
        offers = await Runtimes([tried.runtime], _ALL).describe()
        assert [(offer.type, offer.available, offer.why_not) for offer in offers] == [
            (kind, True, None) for kind in tried.runtime.types
        ]


async def test_a_workspace_whose_container_is_not_known_any_more_is_entered_by_nobody(tmp_path: Path) -> None:
    async with _local(tmp_path) as tried:
        runtime = DevcontainerRuntime(tried.library, tmp_path / "containers", environ=os.environ, programs=())
        workspace = await tried.prepared()
        (tmp_path / "containers").mkdir()
        (tmp_path / "containers" / f"{workspace.id}.json").write_text("{")
        chosen = Runtimes([runtime, tried.runtime], _ALL).of(workspace.id)
        with pytest.raises(RuntimeRefused):
            await Tried(chosen, tried.library, tried.left).run(workspace, "true")
        await tried.library.destroy(workspace.id)


async def test_only_what_the_operator_allows_can_be_ordered(tmp_path: Path) -> None:
    async with _local(tmp_path) as tried:
        with pytest.raises(RuntimeRefused):
            Runtimes([tried.runtime], ("local",)).ordered("disabled")


async def test_a_start_without_a_workspace_runs_where_its_grant_says_and_nowhere_else(tmp_path: Path) -> None:
    async with _local(tmp_path) as tried:
        there = DevcontainerRuntime(tried.library, tmp_path / "containers", environ=os.environ, programs=())
        starter = Starter(Runtimes([there, tried.runtime], _ALL))
        start = Start(grant=Grant(), argv=("/bin/sh", "-c", "pwd; echo $HOME"), home=str(tmp_path / "home"), cwd="/")
        assert await starter.start(start, asked(60)) == (0, f"/\n{tmp_path}/home\n".encode())
        grant = Grant(runtime=wire.Runtime(type="devcontainer"))
        with pytest.raises(WorkspaceNotFound):
            await starter.start(msgspec.structs.replace(start, grant=grant), asked(60))


async def test_a_program_sees_few_variables_of_ours_and_its_own_home(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/root", "SECRET_KEY": "sesame", "LANG": "C"}
    starter = Starter(Runtimes([LocalRuntime(None, (), environ)], ()))
    start = Start(grant=Grant(), argv=("env",), env={"OWN": "1"}, home=str(tmp_path / "home"), cwd="/")
    _, output = await starter.start(start, asked(60))
    found = dict(line.split("=", 1) for line in output.decode().splitlines() if not line.startswith("OSTLER_HELPER_OF"))
    assert {name: found.pop(name) for name in ("LANG", "OWN")} == {"LANG": "C", "OWN": "1"}
    assert found.pop("PATH") == environ["PATH"]
    assert "SECRET_KEY" not in found
    assert all(value.startswith(str(tmp_path / "home")) for value in found.values())
