"""Two servers on one PostgreSQL without agents of their own, and runners that are linked to either."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from ostler.base.errors.runners import LinkLost
from ostler.link.channel import LINK_VERSION, Hello
from ostler.link.keys import hashed
from ostler.link.socket import dialled, greet
from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.loopback import beating, goodbye_from
from tests.support.patience import stretched, wait_until
from tests.support.talk import Talk, said

HELLO = Hello(link=LINK_VERSION, version="1", boot="b", labels={}, slots=1, os="linux", arch="arm", hostname="h")
NO_AGENTS = ("--local-slots", "0", "--runner-beat-seconds", "0.5")


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, *NO_AGENTS)
        yield found
    finally:
        found.close()


def ordered(api: httpx.Client, prompt: str = "mock: say done", **more: Any) -> str:
    task = {"prompt": prompt, "agent": {"type": "mock"}, "repo": {"mode": "none"}, **more}
    answer = api.post("/tasks", json=task)
    assert answer.status_code < 300, answer.text
    return str(answer.json()["id"])


def shown(api: httpx.Client, session: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/sessions/{session}").json()
    return found


def done_on(api: httpx.Client, session: str) -> str | None:
    """The runner that a session is completed on."""
    found = shown(api, session)
    return found["runner"]["name"] if found["status"] == "completed" else None


async def links_of(servers: Servers, runner: str) -> int:
    """How many rows tell of a link of a runner."""
    connection = await asyncpg.connect(servers.database)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM runner_links WHERE runner = $1", runner))
    finally:
        await connection.close()


def lines(api: httpx.Client, session: str) -> list[str]:
    events = api.get(f"/sessions/{session}/events?limit=500").json()["events"]
    return [event["data"]["message"] for event in events if event["type"] == "log"]


def test_a_session_of_one_server_runs_on_a_runner_of_the_other(
    servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path
) -> None:
    queued = ordered(a, runtime={"labels": {"disk": "big"}})
    assert shown(b, queued)["placement"] == {"state": "queued", "reason": "waiting for a runner with disk=big"}
    joining = ("--server", servers.url("b"), "--name", "far", "--label", "disk=big", "--slots", "2")
    with started_runner(tmp_path / "far", *joining, token=token_of(servers.url("a"))) as host:
        host.wait_linked()
        wait_until(lambda: done_on(a, queued) == "far", "the session that waited is done")
        assert lines(a, queued)[:2] == ["waiting for a runner with disk=big", "Placed on the runner 'far'."]
        named = ordered(a, workspace={"executionHostId": "far"})
        wait_until(lambda: done_on(b, named) == "far", "one that names the runner is done")
        talk = Talk(a)
        assert said(talk.turn("mock: say here")) == "here"
        assert talk.get()["runner"]["name"] == "far"


def test_every_server_tells_the_same_of_a_runner_and_may_drain_and_remove_it(
    servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path
) -> None:
    joining = ("--server", servers.url("b"), "--name", "shown", "--slots", "1")
    with started_runner(tmp_path / "shown", *joining, token=token_of(servers.url("a"))) as host:
        host.wait_linked()
        wait_until(
            lambda: runners_of(servers.url("a")).get("shown", {}).get("health") == "ok",
            "the other server knows it",
        )
        assert [each["shown"]["server"] for each in map(runners_of, map(servers.url, "ab"))] == [servers.url("b")] * 2
        one = [api.get("/runners/shown").json() for api in (a, b)]
        assert [(each["id"], each["server"], each["health"]) for each in one] == [
            (host.links[0], servers.url("b"), "ok")
        ] * 2
        wait_until(lambda: bool(runners_of(servers.url("a"))["shown"]["snapshotCapabilities"]), "what it can is known")
        busy = ordered(a, "mock: wait 600", workspace={"executionHostId": "shown"})
        wait_until(lambda: runners_of(servers.url("a"))["shown"]["used"] == 1, "what it has to do is known")
        assert a.post("/runners/shown/drain").json()["draining"]
        assert [each["shown"]["draining"] for each in map(runners_of, map(servers.url, "ab"))] == [True, True]
        waits = ordered(b, workspace={"executionHostId": "shown"})
        assert a.post(f"/sessions/{busy}/cancel").status_code < 300
        wait_until(lambda: runners_of(servers.url("a"))["shown"]["used"] == 0, "that it has nothing to do is known")
        assert shown(a, waits)["placement"]["state"] == "queued"
        assert not a.post("/runners/shown/resume").json()["draining"]
        wait_until(lambda: done_on(a, waits) == "shown", "it gets sessions again")
        assert a.delete("/runners/shown").status_code == 204
        assert host.wait_ended() == (1, "Error: Its key was revoked.")
        assert asyncio.run(links_of(servers, host.links[0])) == 0
    assert "shown" not in runners_of(servers.url("b"))
    gone = [api.get("/runners/shown") for api in (a, b)]
    assert [(each.status_code, each.json()["code"]) for each in gone] == [(404, "runner_not_found")] * 2
    assert "shown" not in runners_of(servers.url("a"))
    answer = a.post("/sessions", json={"agent": "mock", "workspace": {"executionHostId": "shown"}})
    assert answer.status_code == 422, answer.text


def test_one_slot_is_never_had_twice(servers: Servers, a: httpx.Client, b: httpx.Client, tmp_path: Path) -> None:
    joining = ("--server", servers.url("b"), "--name", "narrow", "--label", "narrow=yes", "--slots", "1")
    with started_runner(tmp_path / "narrow", *joining, token=token_of(servers.url("a"))) as host:
        host.wait_linked()
        with ThreadPoolExecutor(8) as clients:
            wanted: dict[str, Any] = {"runtime": {"labels": {"narrow": "yes"}}}
            tasks = list(clients.map(lambda number: ordered((a, b)[number % 2], **wanted), range(16)))
        wait_until(lambda: all(done_on(a, task) == "narrow" for task in tasks), "all are done")
    spans = sorted(span_of(a, task) for task in tasks)
    assert [(before, after) for before, after in itertools.pairwise(spans) if after[0] < before[1]] == []


def span_of(api: httpx.Client, session: str) -> tuple[str, str]:
    """From when until when a session had its slot."""
    events = api.get(f"/sessions/{session}/events?limit=500").json()["events"]
    times = {event["data"]["status"]: event["time"] for event in events if event["type"] == "session.status"}
    return times["provisioning"], times["completed"]


def test_a_runner_of_a_tenant_gets_the_sessions_of_that_tenant_only(
    servers: Servers, a: httpx.Client, tmp_path: Path
) -> None:
    token = token_of(servers.url("a"), labels={"tenant": "one"})
    with started_runner(tmp_path / "own", "--server", servers.url("b"), "--name", "own", token=token) as host:
        host.wait_linked()
        other, own, nobody = ordered(a, tenantId="other"), ordered(a, tenantId="one"), ordered(a)
        wait_until(lambda: done_on(a, own) == "own", "its own tenant's session is done")
        assert {shown(a, each)["placement"]["state"] for each in (other, nobody)} == {"queued"}
        for each in (other, nobody):
            assert a.delete(f"/sessions/{each}").status_code == 204


def registered(servers: Servers, key: str) -> None:
    answer = httpx.post(
        f"{servers.url('a')}/api/v1/runners/register",
        json={"keyHash": hashed(key), "name": key},
        headers={"Authorization": f"Bearer {token_of(servers.url('a'))}"},
    )
    assert answer.status_code == 200, answer.text


async def test_a_newer_link_at_another_server_ends_the_older_one(servers: Servers) -> None:
    registered(servers, "newer")
    async with dialled(servers.url("a"), "newer", None) as older, dialled(servers.url("b"), "newer", None) as newer:
        await greet(older, HELLO)
        alive = asyncio.create_task(beating(older))
        await greet(newer, HELLO)
        goodbye = await asyncio.wait_for(goodbye_from(older), stretched(60))
        assert (goodbye.final, "linked to another server since" in goodbye.reason) == (False, True)
        alive.cancel()
        await asyncio.wait([alive])


async def test_a_second_machine_with_the_same_key_waits_while_the_first_shows_life(servers: Servers) -> None:
    registered(servers, "twice")
    other = msgspec.structs.replace(HELLO, boot="other", hostname="second")
    async with dialled(servers.url("a"), "twice", None) as first:
        await greet(first, HELLO)
        alive = asyncio.create_task(beating(first))
        async with dialled(servers.url("b"), "twice", None) as second:
            with pytest.raises(LinkLost, match="Another machine is linked as the runner 'twice' \\(host h\\)"):
                await greet(second, other)
        alive.cancel()
        await asyncio.wait([alive])
    async with asyncio.timeout(stretched(60)):
        while not await is_welcome(servers.url("b"), other):
            await asyncio.sleep(0.2)


async def is_welcome(server: str, hello: Hello) -> bool:
    async with dialled(server, "twice", None) as socket:
        with suppress(LinkLost):
            await greet(socket, hello)
            return True
    return False


def test_a_runner_is_lost_when_its_beat_stands_still_and_not_when_the_database_does(
    servers: Servers, cluster: Cluster, tmp_path: Path
) -> None:
    seen_from = servers.url("a")
    with started_runner(
        tmp_path / "beats", "--server", servers.url("b"), "--name", "beats", token=token_of(seen_from)
    ) as host:
        host.wait_linked()
        wait_until(lambda: runners_of(seen_from).get("beats", {}).get("health") == "ok", "it is known")
        cluster.stop()
        threading.Timer(servers.timeout + 1, cluster.start).start()  # longer than a beat may stand still
        assert runners_of(seen_from)["beats"]["health"] == "ok", servers.logs()  # answered when the database is back
        servers.kill("b")
        wait_until(lambda: runners_of(seen_from)["beats"]["health"] == "lost", "its beat stands still")
        assert runners_of(seen_from)["beats"]["server"] is None
        servers.start("b", *NO_AGENTS)


def test_a_session_that_waits_outlives_its_server(servers: Servers, a: httpx.Client, tmp_path: Path) -> None:
    waits = ordered(a, runtime={"labels": {"late": "yes"}})
    servers.kill("a")
    token, joining = token_of(servers.url("b")), ("--server", servers.url("b"), "--name", "late", "--label", "late=yes")
    with started_runner(tmp_path / "late", *joining, token=token), servers.api("b") as b:
        wait_until(lambda: done_on(b, waits) == "late", "another server has taken it")
    servers.start("a", *NO_AGENTS)
