"""The life of the hosts that this server looks after: made, found again, started again, removed.

A host has a row before anything of it is made, and until nothing of it is there. So whoever dies in between, the next
look compares rows with hosts and mends the difference.
"""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ostler.base.clock import Clock
from ostler.base.errors.runners import RunnerNotFound, RunnerUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.retry import delay_after
from ostler.base.setting_groups.tables import PoolSetting
from ostler.link.provisioner import Host, NewHost, NotMade, Provisioner, Unreachable
from ostler.server.runners.links import RunnerLinks
from ostler.server.runners.tokens import new_token
from ostler.server.sessions.runners.lost_runners import LostRunners
from ostler.server.store.peers import Peers
from ostler.server.store.protocol import Store
from ostler.server.store.records import ManagedRunner
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
LINK_SECONDS = 120.0
"""So long a host may take from its start until its runner is linked; its token is good for no longer."""
_TOKEN_FILE = "/etc/ostler/runner-token"  # noqa: S105  where it is, not what
_AUTHORITY_FILE = "/etc/ostler/authority.pem"
_STATE_DIR = "/var/lib/ostler-runner"
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Hosts:
    """Every host of one server."""

    def __init__(
        self,
        provisioner: Provisioner,
        store: Store,
        links: RunnerLinks,
        lost_runners: LostRunners,
        *,
        server: str,
        address: str,
        peers: Peers | None,
        clock: Clock,
        ca_file: str | None = None,
    ) -> None:
        """`server` is what this one is called, `address` where runners reach it.

        `ca_file` has the authorities that a runner trusts there, unless its pool names others.
        """
        self._provisioner = provisioner
        self._rows = store.managed_runners
        self._keys = store.runner_keys
        self._links = links
        self._lost_runners = lost_runners
        self._server = server
        self._address = address
        self._peers = peers
        self._clock = clock
        self._ca_file = ca_file
        self._starts: dict[str, tuple[int, float]] = {}
        """How often a host was started again without being linked since, and when it may be again."""

    def row(self, host_id: str, pool: str) -> ManagedRunner:
        """What is stored of a host before it is made."""
        return ManagedRunner(
            id=host_id, pool=pool, server=self._server, runner=None, state="making", created_at=self._clock.now()
        )

    async def make(self, row: ManagedRunner, pool: PoolSetting) -> None:
        """Make the host of a row; raises NotMade, and then something of it may be there."""
        authority = await asyncio.to_thread(_authority, pool.ca_file or self._ca_file)
        token = new_token(pool.labels, uses=1, seconds=LINK_SECONDS, now=self._clock.now())
        await self._keys.add_token(token.stored)
        new = NewHost(
            id=row.id,
            server=self._server,
            pool=row.pool,
            image=pool.image,
            command=tuple(_command(row.id, pool, pool.servers or (self._address,), has_authority=bool(authority))),
            files={_TOKEN_FILE: token.secret.encode(), **authority},
            network=pool.network,
            volumes=pool.volumes,
        )
        failpoint("provision.before")
        await self._provisioner.make(new)
        failpoint("provision.after")
        await self._rows.update(replace(row, state="made"), row.server)
        log.info("host.made", host=row.id, pool=row.pool)

    async def look(self) -> tuple[dict[str, Host], dict[str, ManagedRunner], set[str]]:
        """The hosts there are, the rows that this server looks after, and the hosts of them that are surely gone.

        Raises Unreachable. What was made by a server that is lost is looked after by who can see it.
        """
        before = {row.id for row in await self._rows.all() if row.state == "made"}
        found = await self._provisioner.list()
        rows = {row.id: row for row in await self._rows.all()}
        ours = {each.id: each for row in rows.values() if (each := await self._ours(row, found)) is not None}
        for host in found.values():
            if host.id not in rows and self._may_remove(host.server):
                log.warning("host.stray", host=host.id)
                await self._provisioner.remove(host.id)
        return found, ours, (before & ours.keys()) - found.keys()

    async def _ours(self, row: ManagedRunner, found: Mapping[str, Host]) -> ManagedRunner | None:
        if row.server == self._server:
            return row
        is_left = self._peers is None or (self._peers.is_lost(row.server) and row.id in found)
        taken = replace(row, server=self._server)
        return taken if is_left and await self._rows.update(taken, row.server) else None

    def _may_remove(self, server: str) -> bool:
        """Whether hosts of a server are ours to remove: other installations may use the same podman."""
        if server == self._server or self._peers is None:
            return server == self._server
        return self._peers.address_of(server) is not None and self._peers.is_lost(server)

    async def registered(self, row: ManagedRunner, keys: Mapping[str, str]) -> ManagedRunner:
        """The row with the id of its runner, if that has registered since."""
        if row.runner is not None or row.id not in keys:
            return row
        known = replace(row, runner=keys[row.id])
        await self._rows.update(known, self._server)
        return known

    async def made(self, row: ManagedRunner) -> ManagedRunner:
        """A host that runs, although who made it died before that was written down."""
        found = replace(row, state="made")
        await self._rows.update(found, self._server)
        return found

    async def start(self, row: ManagedRunner) -> str | None:
        """Start one that has stopped, less and less often if that is in vain; why it is, if it is now."""
        count, not_before = self._starts.get(row.id, (0, 0.0))
        if time.monotonic() < not_before:
            return None
        pause = delay_after(count + 1, _FIRST_PAUSE, _LONGEST_PAUSE, chance=lambda: 1.0)
        self._starts[row.id] = count + 1, time.monotonic() + pause
        log.warning("host.stopped", host=row.id, starts=count + 1)
        try:
            await self._provisioner.start(row.id)
        except NotMade as error:
            return str(error)
        return None

    def linked(self, row: ManagedRunner) -> None:
        """Its runner is there: the next time it stops it is started at once."""
        self._starts.pop(row.id, None)

    async def last_words(self, row: ManagedRunner) -> str:
        """What its runner wrote last."""
        return await self._provisioner.last_words(row.id)

    async def drain(self, row: ManagedRunner, on: bool) -> None:
        """Place no more sessions on its runner, whichever server that is linked to; or place them again."""
        if row.runner is not None:
            with suppress(RunnerNotFound, RunnerUnavailable):
                await (self._links.drain(row.runner) if on else self._links.resume(row.runner))

    async def remove(self, row: ManagedRunner) -> None:
        """Have nothing of it any more; if podman does not answer, that is done another time."""
        removing = replace(row, state="removing")
        if row.state != "removing" and not await self._rows.update(removing, self._server):
            return
        try:
            await self._provisioner.remove(row.id)
        except Unreachable as error:
            log.warning("host.not_removed", host=row.id, reason=str(error))
            return
        await self._forget(removing, "was removed")

    async def forget(self, row: ManagedRunner) -> None:
        """Its host is gone: its runner will not come back, and its sessions do not wait for it."""
        await self._forget(row, "is gone with its machine")

    async def _forget(self, row: ManagedRunner, what: str) -> None:
        if row.runner is not None:
            about = RunnerAbout(id=row.runner, name=row.id)
            self._lost_runners.gone(about, f"the runner '{row.id}' {what}")
        if row.runner in {key.runner for key in await self._keys.all()}:
            await self._links.revoke(row.runner or "")
        self._starts.pop(row.id, None)
        await self._rows.remove(row.id)
        log.info("host.gone", host=row.id, pool=row.pool)

    async def keys(self) -> dict[str, str]:
        """The runner that has each name."""
        return {key.name: key.runner for key in await self._keys.all()}


def _authority(file: str | None) -> dict[str, bytes]:
    """What a host gets to check servers with."""
    try:
        return {_AUTHORITY_FILE: Path(file).read_bytes()} if file is not None else {}
    except OSError as error:
        raise NotMade(f"{file} cannot be read ({error.strerror or error})") from error


def _command(name: str, pool: PoolSetting, servers: Collection[str], *, has_authority: bool) -> Iterator[str]:
    yield from (*pool.command, "runner")
    for server in servers:
        yield from ("--server", server)
    yield from ("--token-file", _TOKEN_FILE, "--name", name, "--slots", str(pool.slots), "--state-dir", _STATE_DIR)
    if has_authority:
        yield from ("--ca-file", _AUTHORITY_FILE)
    if pool.insecure:
        yield "--insecure"
