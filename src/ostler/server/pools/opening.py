"""Whether a server has pools."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ostler.base.clock import Clock
from ostler.base.settings import Settings
from ostler.link.provisioner import Provisioner
from ostler.server.runners.links import RunnerLinks
from ostler.server.runners.registry import Runners
from ostler.server.sessions.runners.lost_runners import LostRunners
from ostler.server.sessions.service import Sessions
from ostler.server.store.opening import advertised
from ostler.server.store.peers import Peers


@asynccontextmanager
async def running_pools(
    settings: Settings,
    provisioner: Callable[[Settings], Provisioner],
    port: int,
    *,
    sessions: Sessions,
    runners: Runners,
    links: RunnerLinks,
    lost_runners: LostRunners,
    peers: Peers | None,
    clock: Clock,
) -> AsyncIterator[None]:
    """Look after the pools of the settings, or what is left of earlier ones; most servers have neither."""
    pools, store = settings.pools or {}, sessions.store
    if not pools and runners.home not in {row.server for row in await store.managed_runners.all()}:
        yield
        return
    from ostler.server.pools.hosts import Hosts  # noqa: PLC0415  most servers do without
    from ostler.server.pools.service import Pools  # noqa: PLC0415  the same

    address = advertised(settings, port) if any(not pool.servers for pool in pools.values()) else ""
    made = provisioner(settings)
    hosts = Hosts(
        made,
        store,
        links,
        lost_runners,
        server=runners.home,
        address=address,
        peers=peers,
        clock=clock,
        ca_file=settings.ca_file,
    )
    opened = Pools(pools, hosts, sessions, runners)
    opened.start()
    try:
        yield
    finally:
        await opened.close()
