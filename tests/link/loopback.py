"""A link in one process that encodes and decodes every message, both ways, as one between two hosts would."""

import asyncio

from ostler.link.protocol import Runner
from ostler.link.remote import RemoteRunner, RunnerService


class Loopback:
    """A server's end and a runner's end; nothing but bytes passes between them, later than it was sent."""

    def __init__(self, runner: Runner) -> None:
        loop = asyncio.get_running_loop()
        self.service = RunnerService(runner, lambda data: void(loop.call_soon(self.runner.peer.receive, data)))
        self.runner = RemoteRunner(lambda data: void(loop.call_soon(self.service.peer.receive, data)))

    async def close(self) -> None:
        """Cut the link."""
        await self.service.peer.close()
        await self.runner.peer.close()


def void(_: object) -> None:
    """Nothing of it is wanted."""
