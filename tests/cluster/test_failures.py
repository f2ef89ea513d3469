"""Servers that die, stop and come back, and a database that does."""

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import asyncpg
import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.cluster.test_two_servers import at, following, sequences
from tests.support.databases import Cluster
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env
from tests.support.talk import Talk, said, stream


@pytest.fixture(autouse=True)
def both(servers: Servers) -> Iterator[None]:
    """Whatever a test did to them, both are there again."""
    yield
    servers.start_missing()


def words(talk: Talk) -> list[str]:
    texts = [event["data"]["delta"]["text"] for event in talk.events if event["type"] == "item.delta"]
    return "".join(texts).split()


def test_a_dead_server_keeps_its_agents_and_goes_on_with_them_when_it_is_back(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    talk = Talk(a)
    there = at(b, talk)
    talk.send("mock: stream 400 words 40/s")
    there.until(lambda event: event["type"] == "item.delta")
    servers.kill("a")

    seen = there.events[-1]["sequence"]
    headers = {"last-event-id": str(seen)}
    with b.stream("GET", f"/sessions/{talk.id}/events/sse", headers=headers) as answer:
        assert answer.status_code == 200  # what was written before is read on
    refused = b.post(f"/sessions/{talk.id}/messages", json={"message": "mock: say hi"})
    assert (refused.status_code, refused.json()["code"]) == (503, "server_away")
    assert int(refused.headers["retry-after"]) > 0
    assert b.get(f"/sessions/{talk.id}").json()["activity"] == "working"
    other = Talk(b)
    assert said(other.turn("mock: say still here")) == "still here"

    servers.start("a")
    there.until_type("turn.ended")
    assert words(there) == [f"w{number}" for number in range(1, 401)]
    assert sequences(there.events) == list(range(1, len(there.events) + 1))
    assert said(there.turn("mock: say again")) == "again"
    assert b.get(f"/sessions/{other.id}").status_code == 200


def test_who_followed_at_a_server_that_died_goes_on_at_another_without_a_gap(servers: Servers, b: httpx.Client) -> None:
    with servers.api("b") as own:
        talk = Talk(own)
    with servers.api("a") as a:
        reader = at(a, talk)
        talk.api = b
        talk.send("mock: stream 200 words 40/s")
        reader.until(lambda event: event["type"] == "item.delta")
        servers.kill("a")
    reader.api = b
    reader.until_type("turn.ended")
    assert words(reader) == [f"w{number}" for number in range(1, 201)]
    assert sequences(reader.events) == list(range(1, len(reader.events) + 1))


async def test_a_session_that_a_dead_server_made_is_not_made_again_when_it_is_asked_for_at_another(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    wanted, key = {"agent": "mock", "title": "made once"}, {"idempotency-key": "made once"}
    made = a.post("/sessions", json=wanted, headers=key).json()["id"]
    servers.kill("a")
    connection = await asyncpg.connect(servers.database)
    await connection.execute(
        "DELETE FROM idempotency WHERE scope <> 'done'"
    )  # as if it had been killed before it answered
    await connection.close()
    refused = b.post("/sessions", json=wanted, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (503, "server_away")
    servers.start("a")
    again = b.post("/sessions", json=wanted, headers=key)
    assert (again.status_code, again.json()["id"]) == (201, made)
    titles = [session["title"] for session in b.get("/sessions?per_page=200").json()["items"]]
    assert titles.count("made once") == 1


def test_a_server_that_was_stopped_is_away_at_once(servers: Servers, a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    servers.stop("a")
    refused = b.post(f"/sessions/{talk.id}/messages", json={"message": "mock: say hi"})
    assert (refused.status_code, refused.json()["code"]) == (503, "server_away")
    assert b.get("/sessions").status_code == 200
    deletes = partial(b.delete, f"/sessions/{talk.id}")
    wait_until(lambda: deletes().status_code == 204, what="it needs nothing of a machine that is known to be away")
    assert b.get(f"/sessions/{talk.id}").status_code == 404
    servers.start("a")
    with servers.api("a") as again:
        assert again.get(f"/sessions/{talk.id}").status_code == 404


def test_both_servers_go_on_when_the_database_was_away(
    servers: Servers, cluster: Cluster, a: httpx.Client, b: httpx.Client
) -> None:
    talks = [Talk(a), Talk(b)]
    for talk in talks:
        talk.send("mock: stream 200 words 40/s")
        talk.until(lambda event: event["type"] == "item.delta")
    cluster.stop()
    timer = threading.Timer(servers.timeout + 1, cluster.start)  # longer than a server may be silent
    timer.start()
    crossed = [at(b, talks[0]), at(a, talks[1])]
    timer.join()
    for talk in crossed:
        talk.until_type("turn.ended")
        assert words(talk) == [f"w{number}" for number in range(1, 201)]
        assert sequences(talk.events) == list(range(1, len(talk.events) + 1))
        assert said(talk.turn("mock: say fine")) == "fine"
    with following(a, "/events", stream=1, types="turn.ended") as project:
        crossed[0].turn("mock: say heard")
        wait_until(lambda: crossed[0].events[-1] in project, what="the feed of the project stands still")


async def test_who_lost_a_session_drops_it_and_passes_on_what_comes(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    talk = Talk(a)
    talk.turn("mock: say mine")
    database = await asyncpg.connect(servers.database)
    mine = await database.fetchval("SELECT owner FROM owners WHERE session = $1", talk.id)
    other = await database.fetchval("SELECT id FROM servers WHERE id <> $1", mine)
    update = "UPDATE owners SET owner = $1, epoch = nextval('epochs') WHERE session = $2"
    await database.execute(update, other, talk.id)
    await database.close()
    renamed = a.patch(f"/sessions/{talk.id}", json={"title": "theirs"})
    assert renamed.status_code == 200, renamed.text
    assert b.get(f"/sessions/{talk.id}").json()["title"] == "theirs"
    assert next(stream(a, f"/sessions/{talk.id}/events/sse"))["sequence"] == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE owners SET owner = 'srv_other', epoch = nextval('epochs') WHERE session = $1",
        "INSERT INTO deleted_sessions VALUES ($1, 'default', $1, '2026-01-01T00:00:00.000Z')",
    ],
)
async def test_readers_of_a_session_that_was_lost_unheard_do_not_wait_for_ever(
    servers: Servers, a: httpx.Client, change: str
) -> None:
    talk = Talk(a)
    with a.stream("GET", f"/sessions/{talk.id}/events/sse") as answer:
        lines = answer.iter_lines()
        assert next(lines)
        database = await asyncpg.connect(servers.database)
        await database.execute(change, talk.id)
        await database.close()
        assert list(lines)  # it ends, although no bell was rung


async def test_a_request_is_passed_on_once_and_no_further(servers: Servers, a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    database = await asyncpg.connect(servers.database)
    secret = await database.fetchval("SELECT value FROM shared WHERE name = 'relay'")
    await database.close()
    scope = quote('{"actor": "somebody", "roles": ["viewer", "operator"]}')
    headers = {"ostler-relay": secret, "ostler-relay-scope": scope, "ostler-relay-client": "10.1.2.3"}
    refused = b.patch(f"/sessions/{talk.id}", json={"title": "no"}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (503, "session_elsewhere")
    assert refused.headers["retry-after"]
    assert a.patch(f"/sessions/{talk.id}", json={"title": "yes"}, headers=headers).status_code == 200
    talk.until(lambda event: event["data"].get("title") == "yes")
    assert talk.events[-1]["actor"] == "somebody"
    assert secret not in servers.logs()


def test_a_server_without_an_address_says_what_to_set(servers: Servers, tmp_path: Path) -> None:
    command = [*OSTLER, "serve", "--host", "0.0.0.0", "--port", "0", "--token", "secret-token"]
    command += ["--state-dir", str(tmp_path), "--database", servers.database]
    done = subprocess.run(
        command, env=clean_env(tmp_path), capture_output=True, text=True, check=False, timeout=stretched(120)
    )
    assert done.returncode == 1
    assert "--advertise http://" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    wrong = [*OSTLER, "serve", "--advertise", "10.0.0.1", "--state-dir", str(tmp_path)]
    done = subprocess.run(
        wrong, env=clean_env(tmp_path), capture_output=True, text=True, check=False, timeout=stretched(120)
    )
    assert (done.returncode, "http://host:port" in done.stderr) == (2, True)
