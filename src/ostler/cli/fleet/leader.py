"""A leader: runs a command on every follower of a session by the relay, and says how it ended on each."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress

import click
import msgspec

from ostler.base.ids import new_id
from ostler.client.aio import AsyncClient, AsyncSession
from ostler.client.errors import OstlerApiError
from ostler.wire.connecting import ControlOrder, RunOrder, SignalOrder
from ostler.wire.events import HostExited, HostLog
from ostler.wire.fleets import Follower

LOST = -1
Show = Callable[[str, str, str], object]
"""Takes host, stream and line."""
_ENDING_SECONDS = 15.0


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended on one follower."""

    host: str
    code: int
    reason: str | None = None
    """Why nobody knows how, where the code is -1."""


class RunEverywhere:
    """One command on several followers at once; `show` gets what each prints, as it comes."""

    def __init__(self, client: AsyncClient, session: AsyncSession, hosts: Sequence[str], show: Show) -> None:
        self._client = client
        self._session = session
        self._hosts = tuple(hosts)
        self._show = show
        self._run = new_id("run")
        self._ended: dict[str, Ended] = {}
        self._partial: dict[tuple[str, str], str] = defaultdict(str)

    async def run(self, command: Sequence[str], *, seconds: float, fail_fast: bool) -> list[Ended]:
        """How it ended on each, and tell the session; what is over time is killed."""
        offset = self._session.seen
        order = RunOrder(run=self._run, command=tuple(command))
        try:
            async with asyncio.timeout(seconds or None):
                await asyncio.gather(*(self._order(host, order) for host in self._hosts))
                await self._follow(offset, fail_fast=fail_fast)
        except TimeoutError:
            await self._signal("KILL")
            for host in self._open:
                self._end(host, LOST, f"not done after {seconds:g} seconds; killed")
        self._show_rest()
        found = [self._ended[host] for host in self._hosts]
        passed = [each.host for each in found if each.code == 0]
        failed = [each.host for each in found if each.code != 0]
        await self._session.ingest([{"type": "summary", "passed": passed, "failed": failed}])
        return found

    @property
    def _open(self) -> list[str]:
        return [host for host in self._hosts if host not in self._ended]

    def _end(self, host: str, code: int, reason: str | None = None) -> None:
        self._ended.setdefault(host, Ended(host=host, code=code, reason=reason))

    async def _order(self, host: str, order: ControlOrder) -> None:
        try:
            await self._client.followers.order(self._session.id, host, order)
        except OstlerApiError as error:
            if isinstance(order, RunOrder):
                self._end(host, LOST, error.problem.detail)

    async def _signal(self, number: str) -> None:
        order = msgspec.convert({"type": "signal", "run": self._run, "signal": number}, SignalOrder)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING_SECONDS):
                await asyncio.gather(*(self._order(host, order) for host in self._open))

    async def _follow(self, offset: int, *, fail_fast: bool) -> None:
        """Hear what the followers print until all have ended."""
        is_stopping = False
        events = self._client.events.stream(self._session.id, offset=offset)
        try:
            while self._open:
                if fail_fast and not is_stopping and any(each.code for each in self._ended.values()):
                    is_stopping = True
                    await self._signal("TERM")
                event = await anext(events, None)
                match event:
                    case HostLog(data=data) if data.run == self._run:
                        self._print(data.host, data.stream, data.message)
                    case HostExited(data=data) if data.run == self._run:
                        self._end(data.host, data.code)
                    case None:
                        for host in self._open:
                            self._end(host, LOST, "the session ended")
                    case _:
                        pass
        finally:
            await events.aclose()

    def _print(self, host: str, stream: str, text: str) -> None:
        *lines, rest = (self._partial[host, stream] + text).split("\n")
        self._partial[host, stream] = rest
        for line in lines:
            self._show(host, stream, line)

    def _show_rest(self) -> None:
        for (host, stream), rest in self._partial.items():
            if rest:
                self._show(host, stream, rest)


async def pick(
    client: AsyncClient, session: str, hosts: Sequence[str], tags: Sequence[str]
) -> tuple[AsyncSession, list[Follower]]:
    """A session, and those of its followers that are named or have the tags; raises if there is none."""
    opened = await client.sessions.open(session)
    found = _chosen((await client.followers.list()).items, opened.id, hosts, tags)
    missing = sorted({*hosts} - {each.name for each in found})
    if missing or not found:
        what = f"no follower '{missing[0]}'" if missing else "no such follower"
        raise click.ClickException(
            f"Session '{session}' has {what}. Start one there: ostler follower {session} --name {(*missing, 'NAME')[0]}"
        )
    return opened, found


def _chosen(followers: Sequence[Follower], session: str, hosts: Sequence[str], tags: Sequence[str]) -> list[Follower]:
    """The followers of a session that are named, or have all of these tags."""
    mine = [each for each in followers if any(there.session_id == session for there in each.sessions)]
    if hosts:
        return [each for each in mine if each.name in hosts]
    return [each for each in mine if set(tags) <= {*each.tags, f"os={each.os}"}]
