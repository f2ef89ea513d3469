"""What the tools do to files and programs; where that happens can be exchanged.

`Workspace` does it in a folder of this machine, `Through` on the other side of a command such as `podman exec`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from ostler.agent.processes import Command, Hear


class ToolFailed(Exception):
    """A tool could not do it; the text is for the model."""


class Missing(ToolFailed):
    """There is no such file."""


class Unreachable(ToolFailed):
    """The other side did not answer; what repeats nothing is tried again."""


class Found(msgspec.Struct, frozen=True):
    """A file, by its path below the folder that was listed."""

    path: str
    changed_at: float


QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb", "NO_COLOR": "1"}
"""Variables of the model's commands: nothing waits for a person, and nothing is coloured."""
Wrap = Callable[[str], Sequence[str]]
"""What is started on this machine for a command of a shell."""


def replacing(command: str) -> Sequence[str]:
    """A shell that becomes the command, so that a signal reaches it."""
    return ("sh", "-c", f"exec {command}")


class Operations(Protocol):
    """All that tools do to the workspace. Paths are held inside of it; what cannot be done raises ToolFailed.

    Everything but `run` may wait for disk or network, and is not called in the event loop.
    """

    @property
    def root(self) -> str:
        """The folder, as the model is told it."""

    @property
    def machine(self) -> str:
        """What it lies on, as the model is told it."""

    def relative(self, path: str) -> str:
        """A path as it is called from the root."""

    def place(self, path: str) -> str:
        """Where a path really is, from the root."""

    def read(self, path: str, most: int, *, granted: Collection[str] = ()) -> bytes:
        """The content of a file; `granted` paths are those of this machine, wherever they are."""

    def write(self, path: str, content: bytes) -> bool:
        """Put a file there, whole or not at all; says whether there was one."""

    def names(self, path: str) -> list[str]:
        """What is in a folder."""

    def files(self, path: str) -> Iterator[Found]:
        """All files below a folder but those of `.git`."""

    def run(
        self,
        command: str,
        hear: Hear,
        *,
        environ: Mapping[str, str],
        seconds: float,
        wrap: Wrap = replacing,
        alone: bool = False,
    ) -> AbstractAsyncContextManager[Command]:
        """Run a command of a shell in the root; it is ended when the block is left, or after about so many seconds.

        Of `environ` the other side of a `Through` sees nothing but `QUIET`.
        """
