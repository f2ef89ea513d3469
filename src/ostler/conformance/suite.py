"""Runs the suite on one agent and tells of each behaviour how it went."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter
from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.conformance.behaviours import BEHAVIOURS, Behaviour, has
from ostler.conformance.cases import CASES
from ostler.conformance.outcomes import Unmet
from ostler.conformance.rows import row_of
from ostler.conformance.sink import PATIENCE
from ostler.conformance.stage import LiveStage, Programs, Row, Stage
from ostler.wire.agents import BehaviourResult

log = Log(__name__)
MakeStage = Callable[[Behaviour, Path], Stage]
_UNCLAIMED_PATIENCE = 30.0
_REASON_LENGTH = 400


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """The suite for one agent."""

    adapter: Adapter
    programs: Programs
    row: Row
    also_unclaimed: bool = False
    """Try what the agent does not claim as well, with less patience."""

    @classmethod
    def of(cls, adapter: Adapter, programs: Programs, *, also_unclaimed: bool = False) -> "Suite":
        """The suite for an agent with the row that it has in the table."""
        return cls(adapter=adapter, programs=programs, row=row_of(adapter), also_unclaimed=also_unclaimed)

    def with_variables(self, given: Mapping[str, str]) -> "Suite":
        """The same with more variables for the agent; {url} in one is the model's address."""
        before = self.row.variables

        def variables(url: str) -> dict[str, str]:
            return {**before(url), **{name: value.replace("{url}", url) for name, value in given.items()}}

        row = msgspec.structs.replace(self.row, variables=variables)
        return msgspec.structs.replace(self, row=row)

    async def run(
        self, *, only: Sequence[str] = (), jobs: int = 1, make_stage: MakeStage | None = None
    ) -> AsyncIterator[BehaviourResult]:
        """The results in the order of the manifest, some at the same time."""
        gate = asyncio.Semaphore(1 if self.row.alone else jobs)
        chosen = [behaviour for behaviour in BEHAVIOURS if not only or behaviour.id in only]
        tasks = [asyncio.create_task(self._one(behaviour, gate, make_stage or self.stage)) for behaviour in chosen]
        try:
            for task in tasks:
                yield await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, behaviour: Behaviour, gate: asyncio.Semaphore, make_stage: MakeStage) -> BehaviourResult:
        claimed = self.claims(behaviour)
        excuse = self.row.without.get(behaviour.id)
        if excuse is not None or not (claimed or self.also_unclaimed):
            why = excuse or f"it has no {behaviour.capability.replace('_', ' ')}"
            return BehaviourResult(behaviour=behaviour.id, claimed=claimed, verdict="unclaimed", reason=why)
        async with gate:
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as folder:
                stage = make_stage(behaviour, Path(folder))
                reason = await play(behaviour, stage)
            return BehaviourResult(
                behaviour=behaviour.id,
                claimed=claimed,
                verdict="passes" if reason is None else "fails",
                seconds=round(time.monotonic() - started, 2),
                reason=reason,
                unparsed=tuple(stage.unparsed),
            )

    def claims(self, behaviour: Behaviour) -> bool:
        """Whether the agent says that it can do this and the suite can show it."""
        return has(self.adapter.info.capabilities, behaviour) and behaviour.id not in self.row.without

    def stage(self, behaviour: Behaviour, folder: Path) -> LiveStage:
        """Where a behaviour is shown."""
        return LiveStage(self.adapter, self.row, self.programs, folder, patience=self.patience(behaviour))

    def patience(self, behaviour: Behaviour) -> float:
        """How long to wait for an event."""
        return PATIENCE if self.claims(behaviour) else _UNCLAIMED_PATIENCE


async def play(behaviour: Behaviour, stage: Stage) -> str | None:
    """Why the behaviour was not shown; None if it was."""
    try:
        await CASES[behaviour.id](stage)
    except (Unmet, OstlerError) as error:
        return _short(str(error))
    except Exception as error:
        log.error("case.failed", behaviour=behaviour.id, exc_info=error)
        return _short(f"{type(error).__name__}: {error}")
    return None


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= _REASON_LENGTH else f"{line[: _REASON_LENGTH - 1]}…"
