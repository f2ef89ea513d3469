"""What the command line asks for: the suite on one agent, with or without a recording."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from ostler.base.settings import Settings
from ostler.conformance.behaviours import BY_ID
from ostler.conformance.one_shot import one_shot
from ostler.conformance.programs import adapter_of, programs_of
from ostler.conformance.recorder import record
from ostler.conformance.suite import Suite
from ostler.wire.agents import BehaviourResult, OneShotResult


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent is examined, and how."""

    agent: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    only: tuple[str, ...] = ()
    jobs: int = 1
    out: Path | None = None
    """Where recordings go; None for none."""

    @property
    def unknown(self) -> list[str]:
        """Wanted behaviours that do not exist."""
        return [behaviour for behaviour in self.only if behaviour not in BY_ID]


def behaviours() -> tuple[str, ...]:
    """All behaviours there are."""
    return tuple(BY_ID)


def examine(order: Order, settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[BehaviourResult]:
    """The results, one by one; raises UnsupportedAgent or AgentNotInstalled before the first."""
    adapter = adapter_of(order.agent, settings, order.command)
    suite = Suite.of(adapter, programs_of(adapter, settings, environ, order.command)).with_variables(order.env)
    if order.out is None:
        return suite.run(only=order.only, jobs=order.jobs)
    return record(suite, order.out, only=order.only, jobs=order.jobs)


async def examine_once(order: Order, settings: Settings, environ: Mapping[str, str]) -> OneShotResult:
    """One prompt to the program alone; raises what `one_shot` does."""
    return await one_shot(order.agent, order.command, settings, environ)
