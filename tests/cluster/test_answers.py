"""What the log says was decided is what the agent hears, also while its runner moves from a dead server to another."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.hosts import started_runner, token_of
from tests.support.patience import stretched
from tests.support.talk import Talk, said

_WAITING = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
_ADOPTING = "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'SELECT step FROM chunks%' AND query_start > $1"
"""Whether a server has just looked how far an agent has come in the log, which it does to adopt it."""
_LIKELY_SECONDS = 5.0
_OWNER = "SELECT owner FROM owners WHERE session = $1"
_ASKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "permission": ("mock: permission go on", "/permissions/{}/reply", {"reply": "once"}),
    "question": ("mock: question Which drink? | tea | milk", "/questions/{}/reply", {"answers": [["tea"]]}),
}
_HEARD = {"permission": "Allowed: go on", "question": "You answered: tea"}


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers that run no agents themselves."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        found.start("b", "--local-slots", "0")
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("kind", list(_ASKS))
async def test_a_decision_on_its_way_to_the_disk_while_the_agent_is_adopted_reaches_it_as_it_was_made(
    servers: Servers, b: httpx.Client, tmp_path: Path, kind: str
) -> None:
    servers.start("a", "--local-slots", "0")
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"), "--name", kind)
    prompt, path, decision = _ASKS[kind]
    slow = {"OSTLER_FAILPOINT": "adopt.before:sleep"}
    token = token_of(servers.url("a"))
    database = await asyncpg.connect(servers.database)
    locking = await asyncpg.connect(servers.database)  # in a transaction one sees what others do as it was
    with started_runner(tmp_path / "runner", *addresses, token=token, env=slow) as runner:
        runner.wait_linked()
        with servers.api("a") as a:
            talk = Talk(a)
            talk.send(prompt)
            asked = talk.until_type(f"{kind}.requested")["data"][f"{kind}_id"]
        talk.api = b
        first = await database.fetchval(_OWNER, talk.id)
        async with locking.transaction():
            await locking.execute("LOCK asks IN SHARE MODE")
            killed = await database.fetchval("SELECT clock_timestamp()")
            servers.kill("a")
            await _until(lambda: _is(database, first, talk.id), "the other server has the session")
            await _likely(lambda: database.fetchval(_ADOPTING, killed))
            runner.process.send_signal(signal.SIGSTOP)
            deciding = asyncio.create_task(asyncio.to_thread(talk.post, path.format(asked), **decision))
            await _until(lambda: database.fetchval(_WAITING), "the decision waits to be written")
            runner.process.send_signal(signal.SIGCONT)
            await _likely(lambda: _says(servers, talk.id))
        await locking.close()
        await database.close()
        answer = await deciding
        assert answer.status_code == 200, answer.text
        talk.until_type("turn.ended")
        assert _HEARD[kind] in said(talk.events)
        assert b.delete(f"/sessions/{talk.id}").status_code == 204


async def _is(database: "asyncpg.Connection[asyncpg.Record]", first: str, session_id: str) -> bool:
    return bool(await database.fetchval(_OWNER, session_id) != first)


async def _says(servers: Servers, session_id: str) -> bool:
    lines = servers.logs().splitlines()
    return any("session.recovered" in line and session_id in line for line in lines)


async def _likely(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait for what makes the race likely; if it does not come, what must be true is true all the same."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LIKELY_SECONDS):
            while not await condition():
                await asyncio.sleep(0.005)


async def _until(condition: Callable[[], Awaitable[object]], what: str) -> None:
    """Wait for what must come."""
    async with asyncio.timeout(stretched(60)):
        while not await condition():
            await asyncio.sleep(0.01)
