"""Agents as plain processes of this machine, inside the mounts of their workspaces."""

import msgspec

from ostler.agents.adapter import Launch
from ostler.link.workspaces import Progress
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.wire import workspaces as wire
from ostler.wire.running import AgentSpec
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import Workspace


class LocalRuntime:
    """Implements Runtime; it is what every workspace runs in that no other runtime has."""

    types: tuple[wire.RuntimeType, ...] = ("local", "disabled")
    needs_visible = False
    applies_limits = False

    def __init__(self, library: WorkspaceLibrary, allowed: tuple[wire.RuntimeType, ...]) -> None:
        """`allowed` are the types that the server takes."""
        self._library = library
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

    async def enter(self, spec: AgentSpec, launch: Launch) -> Launch:
        """The words before a command that lead into the workspace."""
        if spec.workspace is None:
            return launch
        entry = await self._library.entry(spec.workspace)
        return msgspec.structs.replace(launch, argv=entry.command(launch.argv))

    def copy(self, origin: str, workspace: str) -> None:
        """Nothing was made."""

    async def remove(self, workspace: str) -> None:
        """Nothing was made."""
