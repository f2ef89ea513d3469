"""The two ends of a link: all that a server and a runner say to each other, over one socket."""

from collections.abc import Callable

from ostler.link.channel import Channel, Goodbye, Socket, Taken
from ostler.link.protocol import Runner
from ostler.link.remote import RemoteRunner, RunnerService
from ostler.link.remote_workspaces import RemoteWorkspaces, WorkspacesService
from ostler.link.workspaces import Workspaces

_MOST_HELD = 64 * 2**20
"""Bytes that the calls of one runner may hold in the server, besides the last one."""


class ServerEnd:
    """A runner as a server has it while the link is there."""

    def __init__(self, socket: Socket, beat: float, *, heard: Callable[[], object] = lambda: None) -> None:
        """`heard` is called whenever the runner has shown that it is there."""
        self._channel = Channel(socket, beat, heard=heard, most_held=_MOST_HELD)
        self.runner = RemoteRunner(self._channel.sender("runner"))
        self.workspaces = RemoteWorkspaces(self._channel.sender("workspaces"))
        self._channel.attach("runner", self.runner.peer)
        self._channel.attach("workspaces", self.workspaces.peer)

    @property
    def round_trip(self) -> float | None:
        """Seconds that a word takes to the runner and back; None until that was measured."""
        return self._channel.round_trip

    def take(self) -> None:
        """Tell the runner that it may get work."""
        self._channel.tell(Taken())

    def leave(self, goodbye: Goodbye) -> None:
        """Say goodbye to the runner."""
        self._channel.leave(goodbye)

    async def run(self) -> Goodbye | None:
        """Be linked; the runner's goodbye, or None if it was ours. Raises LinkLost if the link breaks."""
        return await self._channel.run()

    async def finish(self) -> None:
        """Wait until all that the runner has reported is in the log, or never will be."""
        await self.runner.peer.finish()
        await self.workspaces.close()


class RunnerEnd:
    """Serves one server over one socket until one of them leaves."""

    def __init__(
        self,
        socket: Socket,
        beat: float,
        runner: Runner,
        workspaces: Workspaces,
        *,
        taken: Callable[[], object] = lambda: None,
    ) -> None:
        """`taken` is called when the server has taken the runner in."""
        self._channel = Channel(socket, beat, taken=taken)
        self._runner = runner
        self._agents = RunnerService(runner, self._channel.sender("runner"))
        self._files = WorkspacesService(workspaces, self._channel.sender("workspaces"))
        self._channel.attach("runner", self._agents.peer)
        self._channel.attach("workspaces", self._files.peer)

    async def detach(self) -> None:
        """Let go of all agents; the server is not told of that."""
        await self._runner.detach()

    def leave(self, goodbye: Goodbye) -> None:
        """Say goodbye to the server."""
        self._channel.leave(goodbye)

    async def run(self) -> Goodbye | None:
        """Do what the server asks; its goodbye, or None if it was ours. Raises LinkLost if the link breaks.

        When it is over, agents work on by themselves until another server goes on with them.
        """
        try:
            return await self._channel.run()
        finally:
            await self._runner.detach()  # before anything is broken off: an agent that just starts goes on too
            await self._agents.peer.close()
            await self._files.close()
