"""The seam of runtimes: what the programs of others run in, and how they get there."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec

from ostler.link.workspaces import Progress
from ostler.runner.processes.process import Command
from ostler.wire import workspaces as wire
from ostler.wire.grants import Grant
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import Workspace

T = TypeVar("T")
Way = Callable[[Command], Awaitable[T]]
"""How a process is held, such as by a keeper."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A program of others that is to be started: for whom and within what, what, and where."""

    grant: Grant
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """Its own variables; a runtime adds those that every program there has."""
    home: str
    cwd: str
    workspace: str | None = None
    """The workspace it runs inside."""
    files: dict[str, str] = {}
    """Path below its home -> content."""
    links: dict[str, str | None] = {}
    """Path below its home -> what it stands for elsewhere; None for a link that is not wanted any more."""


class Runtime(Protocol):
    """One kind of runtime of a runner; a new one is a file with such a class and a line where `app.py` lists them.

    What it must know about a workspace after a restart it keeps itself. Nothing here may block the event loop.
    """

    types: tuple[wire.RuntimeType, ...]
    """What orders call it."""
    needs_visible: bool
    """Whether it only takes workspaces whose files every process of the machine sees."""
    applies_limits: bool
    """Whether the resources of an order are limits here."""

    async def describe(self, kind: wire.RuntimeType) -> RuntimeInfo:
        """What it offers under one of its names, and whether it works here."""

    async def check(self) -> None:
        """Raise RuntimeRefused unless it works here; makes nothing."""

    async def prepare(self, workspace: Workspace, wanted: wire.Runtime, progress: Progress) -> None:
        """Make ready what agents in a new workspace will run in; what was begun is removed by `remove`."""

    def has(self, workspace: str) -> bool:
        """Whether a workspace was prepared for it, now or by an earlier server."""

    def container(self, workspace: str) -> wire.Devcontainer | None:
        """The container that agents of this workspace run in, if it is one."""

    async def start(self, start: Start, way: Way[T]) -> T:
        """Start a program inside, with its limits; its workspace was prepared for this runtime, its home is ready."""

    def copy(self, origin: str, workspace: str) -> None:
        """A fork runs in the same way as the workspace it comes from."""

    async def remove(self, workspace: str) -> None:
        """The workspace goes, and all that was made for it; one that has nothing is fine."""
