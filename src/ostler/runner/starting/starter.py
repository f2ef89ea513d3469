"""The one door to the programs of others: a grant says what they may have, its runtime is where they run."""

import asyncio

from msgspec.structs import replace

from ostler.runner.runtimes.home import home_variables, prepare_home
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.runtimes.runtime import Start, T, Way
from ostler.wire.grants import Grant

OWN = Grant(actor="runner")
"""Of what a runner asks of programs by itself: which version they are, and whether they are logged in."""


class Starter:
    """Starts agents, spares, setup commands, logins and probes; nothing of a runner goes around it."""

    def __init__(self, runtimes: Runtimes) -> None:
        self.runtimes = runtimes

    async def start(self, start: Start, way: Way[T]) -> T:
        """Make its home ready and start it where its grant says; raises what the runtime or the way to hold it does."""
        await asyncio.to_thread(prepare_home, start.home, start.files, start.links)
        start = replace(start, env={**home_variables(start.home), **start.env})
        return await self.runtimes.of_start(start).start(start, way)
