"""The server's end of links, with a real store and a real WebSocket."""

import asyncio
from pathlib import Path

from ostler.base.clock import SystemClock
from ostler.link.channel import LINK_VERSION, Hello
from ostler.link.keys import hashed
from ostler.link.socket import greet
from ostler.server.runners.links import RunnerLinks
from ostler.server.runners.registry import Runners
from ostler.server.runners.shared import SharedLinks
from ostler.server.store.records import RunnerKey, RunnerToken
from ostler.server.store.sqlite.store import SqliteStore
from tests.support.loopback import beating, goodbye_from, socket_pair
from tests.support.patience import stretched

NOW = "2026-01-01T00:00:00.000Z"
HELLO = Hello(link=LINK_VERSION, version="1", boot="b", labels={}, slots=1, os="linux", arch="arm", hostname="h")


async def test_a_key_that_another_server_revoked_ends_the_link(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    await store.runner_keys.add_token(
        RunnerToken(id="rtk_1", hash="t", labels={}, uses=1, expires_at=None, created_at=NOW)
    )
    key = RunnerKey(runner="run_1", hash=hashed("secret"), name="far", labels={}, created_at=NOW)
    await store.runner_keys.register("t", key)
    runners, clock = Runners(SystemClock()), SystemClock()
    shared = SharedLinks(runners, store.runner_keys, store.managed_runners, clock, None)
    links = RunnerLinks(runners, shared, store.runner_keys, clock, beat=0.5)
    async with socket_pair() as (listening, dialling):
        serving = asyncio.create_task(links.serve(await links.recognised("secret"), listening))
        assert (await greet(dialling, HELLO)).runner == "run_1"
        alive = asyncio.create_task(beating(dialling))
        await store.runner_keys.revoke("run_1", NOW)  # as any other server of this database would
        goodbye = await asyncio.wait_for(goodbye_from(dialling), stretched(60))
        assert (goodbye.final, goodbye.reason) == (True, "Its key was revoked.")
        await asyncio.wait_for(serving, stretched(60))
        alive.cancel()
        await asyncio.wait([alive])
    await store.close()
