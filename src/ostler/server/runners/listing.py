"""Runners as they are shown."""

import asyncio
from contextlib import suppress

from ostler.base.errors import OstlerError
from ostler.server.runners.known import RunnerStatus
from ostler.server.runners.registry import Runners
from ostler.server.store.peers import Peers
from ostler.wire.runners import RunnerInfo
from ostler.wire.workspaces import ProviderVerdict

_ANSWER_SECONDS = 2.0


async def listed(runners: Runners, peers: Peers | None) -> tuple[RunnerInfo, ...]:
    """Every runner, of every server."""
    await runners.refresh()
    return tuple(await asyncio.gather(*(_info(runners, peers, status) for status in runners.statuses())))


async def listed_one(runners: Runners, peers: Peers | None, id_or_name: str) -> RunnerInfo:
    """One runner."""
    await runners.refresh()
    return await _info(runners, peers, runners.describe(id_or_name))


async def _info(runners: Runners, peers: Peers | None, status: RunnerStatus) -> RunnerInfo:
    about, verdicts = status.about, await _verdicts(runners, status)
    return RunnerInfo(
        id=about.id,
        name=about.name,
        hostname=about.hostname,
        labels=about.labels,
        os=about.os,
        arch=about.arch,
        version=about.version,
        slots=about.slots,
        used=status.used,
        health="ok" if status.linked else "lost",
        last_beat=status.last_beat,
        draining=status.drain_until is not None,
        drain_until=status.drain_until,
        leaving=0,
        server=peers.address_of(status.server) if peers is not None and status.server is not None else None,
        snapshot_capabilities=tuple(verdict.provider for verdict in verdicts if verdict.works),
        managed=status.managed,
        notes={verdict.provider: verdict.why_not for verdict in verdicts if verdict.why_not is not None},
    )


async def _verdicts(runners: Runners, status: RunnerStatus) -> tuple[ProviderVerdict, ...]:
    """How it makes workspaces; what was known last of one that is elsewhere or does not answer in time."""
    with suppress(OstlerError, TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await runners.look_at_providers(status.about.id)
    known = runners.get(status.about.id)
    return known.providers if known is not None else ()
