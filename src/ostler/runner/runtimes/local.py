"""Plain processes of this machine, inside the mounts of their workspaces."""

from collections.abc import Mapping

from ostler.base.errors import WorkspaceNotFound
from ostler.link.workspaces import Progress
from ostler.runner.processes.process import Command
from ostler.runner.runtimes.home import base_environment
from ostler.runner.runtimes.runtime import Start, T, Way
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.wire import workspaces as wire
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import Workspace


class LocalRuntime:
    """Implements Runtime; it is what every workspace runs in that no other runtime has."""

    types: tuple[wire.RuntimeType, ...] = ("local", "disabled")
    needs_visible = False
    applies_limits = False

    def __init__(
        self, library: WorkspaceLibrary | None, allowed: tuple[wire.RuntimeType, ...], environ: Mapping[str, str]
    ) -> None:
        """`allowed` are the types that the server takes; without a library there are no workspaces."""
        self._library = library
        self._environ = environ
        self._allowed = allowed

    async def describe(self, kind: wire.RuntimeType) -> RuntimeInfo:
        """It always works."""
        if kind == "disabled":
            return RuntimeInfo(type=kind, available=True)
        profiles = ("default", "disabled") if "disabled" in self._allowed else ("default",)
        return RuntimeInfo(type=kind, available=True, sandbox_profiles=profiles)

    async def check(self) -> None:
        """It always works."""

    async def prepare(self, workspace: Workspace, wanted: wire.Runtime, progress: Progress) -> None:
        """A workspace is all it needs."""

    def has(self, workspace: str) -> bool:
        """Any workspace will do."""
        return True

    def container(self, workspace: str) -> None:
        """There is none."""

    async def start(self, start: Start, way: Way[T]) -> T:
        """Behind the words that lead into its workspace, with the few variables of ours that a child may see."""
        argv = start.argv
        if start.workspace is not None:
            argv = await self._inside(start.workspace, argv)
        env = {**base_environment(self._environ), **start.env}
        return await way(Command(argv=argv, env=env, cwd=start.cwd))

    async def _inside(self, workspace: str, argv: tuple[str, ...]) -> tuple[str, ...]:
        if self._library is None:
            raise WorkspaceNotFound(workspace=workspace)
        return (await self._library.entry(workspace)).command(argv)

    def copy(self, origin: str, workspace: str) -> None:
        """Nothing was made."""

    async def remove(self, workspace: str) -> None:
        """Nothing was made."""
