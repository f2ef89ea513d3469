"""Events on their way from one process to its session, in order."""

import asyncio

from ostler.link.protocol import Sink
from ostler.runner.execution.dialogue import Dialogue


class Deliveries:
    """At most one delivery is under way; the next one waits until it is durable."""

    def __init__(self, sink: Sink, dialogue: Dialogue) -> None:
        self._sink = sink
        self._dialogue = dialogue
        self.task: asyncio.Task[None] | None = None

    async def hand_over(self, *, ahead: bool = False) -> None:
        """Hand over what has piled up; `ahead` returns when the delivery before it is durable, so one is under way."""
        while drafts := self._dialogue.take_drafts():
            await self.settled()
            delivery = self._sink.deliver(drafts, self._dialogue.steps)
            if ahead:
                self.task = asyncio.create_task(delivery)
                await asyncio.sleep(0)  # it takes its place in the log before anything else happens
            else:
                await delivery

    async def settled(self) -> None:
        """Wait until what was handed over is durable."""
        if self.task is not None:
            try:
                await self.task
            finally:
                self.task = None
