"""A server whose store is a PostgreSQL that somebody may stop at any time."""

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.support.databases import Cluster, running_cluster, running_pooler
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server
from tests.support.talk import Event, Talk, stream


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="ostler-pg-") as folder, running_cluster(Path(folder)) as running:
        yield running


@pytest.fixture
def database(cluster: Cluster) -> tuple[str, str]:
    return "--database", cluster.new_database()


def client_of(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=120)


def words_of(events: list[Event]) -> list[str]:
    return [event["data"]["delta"]["text"].strip() for event in events if event["type"] == "item.delta"]


def test_a_session_works_and_is_there_after_a_kill(state_dir: Path, database: tuple[str, str]) -> None:
    with running_server(state_dir, *database) as server, client_of(server) as api:
        talk = Talk(api, title="kept", labels={"team": "one"})
        talk.turn("mock: say hello")
        talk.send("mock: stream 200 words 100/s")
        talk.until(lambda event: event["type"] == "item.delta")
        server.process.kill()
        server.process.wait()
    with running_server(state_dir, *database) as server, client_of(server) as api:
        talk.api = api
        talk.until_type("turn.ended")
        assert " ".join(words_of(talk.events)).split()[-200:] == [f"w{number}" for number in range(1, 201)]
        assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))
        found = api.get("/sessions", params={"label": "team=one", "q": "KEPT"}).json()
        assert [session["id"] for session in found["items"]] == [talk.id]
        assert talk.turn("mock: say again")[-1]["data"]["outcome"] == "completed"
        assert api.delete(f"/sessions/{talk.id}").status_code == 204
        assert api.get(f"/sessions/{talk.id}").status_code in {404, 410}
    assert (state_dir / "ostler.db").stat().st_size == 0


def test_the_agent_works_on_while_the_database_is_away_and_nothing_is_lost(
    state_dir: Path, cluster: Cluster, database: tuple[str, str]
) -> None:
    with running_server(state_dir, *database) as server, client_of(server) as api:
        talk = Talk(api)
        talk.send("mock: stream 300 words 60/s")
        talk.until(lambda event: event["type"] == "item.delta")
        cluster.stop()
        wait_until(lambda: api.get("/readyz").status_code == 503, what="the server did not notice")
        cluster.start()
        talk.until_type("turn.ended")
        assert " ".join(words_of(talk.events)).split() == [f"w{number}" for number in range(1, 301)]
        assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))
        wait_until(lambda: api.get("/readyz").status_code == 200, what="the server did not recover")


async def test_who_follows_all_sessions_misses_nothing_that_others_hold_up(
    state_dir: Path, database: tuple[str, str]
) -> None:
    with running_server(state_dir, *database) as server, client_of(server) as api:
        talk = Talk(api)
        other = await asyncpg.connect(database[1])
        transaction = other.transaction()
        await transaction.start()
        await other.execute("INSERT INTO lines VALUES ('ses_x', 1, '')")
        talk.turn("mock: say while it is held up")
        following = asyncio.create_task(asyncio.to_thread(_texts_of_all, server, "while it is held up"))
        assert not (await asyncio.wait([following], timeout=2))[0]
        await transaction.commit()
        assert "while it is held up" in await following
        await other.close()


def _texts_of_all(server: RunningServer, last: str) -> str:
    """What the project-wide stream shows from its beginning, up to a word."""
    with client_of(server) as api:
        for event in stream(api, "/events", offset=0, stream="true"):
            if last in str(event["data"]):
                return str(event)
    raise AssertionError("the stream ended")


def test_a_pooler_may_give_each_transaction_another_connection(
    state_dir: Path, cluster: Cluster, database: tuple[str, str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="ostler-pgb-") as folder, running_pooler(cluster, Path(folder)) as port:
        address = f"{database[1].replace(str(cluster.port), str(port))}?pgbouncer=true"
        with running_server(state_dir, "--database", address) as server, client_of(server) as api:
            talks = [Talk(api) for _ in range(3)]
            for talk in talks:
                talk.send("mock: stream 50 words 200/s")
            for talk in talks:
                talk.until_type("turn.ended")
                assert " ".join(words_of(talk.events)).split() == [f"w{number}" for number in range(1, 51)]
            assert api.get("/readyz").status_code == 200


def copy(source: str | Path, target: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [*OSTLER, "database", "copy", str(source), str(target)]
    return subprocess.run(command, env=clean_env(home, {}), capture_output=True, text=True, check=False, timeout=120)


def test_a_store_is_moved_to_postgres_and_back_with_everything(
    state_dir: Path, tmp_path: Path, database: tuple[str, str]
) -> None:
    def seen(api: httpx.Client, talk: Talk) -> object:
        deleted = api.get(f"/sessions/{gone.id}").json()["detail"]
        paths = ("", "/events?limit=1000&raw=true", "/turns", "/messages", "/asks")
        sessions = [api.get(f"/sessions/{talk.id}{path}").json() for path in paths]
        return deleted, sessions, api.get("/prompts").json(), api.get("/events?limit=1000").json()["events"]

    with running_server(state_dir) as server, client_of(server) as api:
        assert "uses" in copy(state_dir, database[1], tmp_path).stderr
        talk = Talk(api, title="moved", labels={"b": "2", "a": "1"})
        talk.turn("mock: say hello\nmock: tool Read {} -> fine\nmock: write a.txt hi")
        assert api.post("/prompts", json={"name": "tea", "text": "Make $ARGUMENTS."}).status_code == 201
        gone = Talk(api)
        api.delete(f"/sessions/{gone.id}")
    with running_server(state_dir) as server, client_of(server) as api:
        before = seen(api, talk)

    moved = copy(state_dir, database[1], tmp_path)
    assert moved.returncode == 0, moved.stderr
    assert "sessions" in moved.stdout
    again = copy(state_dir, database[1], tmp_path)
    assert (again.returncode, "Choose an empty one" in again.stderr) == (1, True)
    with running_server(state_dir, *database) as server, client_of(server) as api:
        assert seen(api, talk) == before
        talk.api = api
        talk.turn("mock: say in postgres")
    with running_server(state_dir, *database) as server, client_of(server) as api:
        before = seen(api, talk)

    (state_dir / "ostler.db").rename(tmp_path / "old.db")
    back = copy(database[1], state_dir, tmp_path)
    assert back.returncode == 0, back.stderr
    with running_server(state_dir) as server, client_of(server) as api:
        assert seen(api, talk) == before
        talk.api = api
        assert talk.turn("mock: say at home")[-1]["data"]["outcome"] == "completed"


def test_what_cannot_be_copied_is_said_in_one_line(tmp_path: Path) -> None:
    done = copy(tmp_path / "none", tmp_path / "new", tmp_path)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [
        f"Error: Nothing was copied: {tmp_path / 'none'} is no state folder: it has no ostler.db."
    ]
    assert not (tmp_path / "new").exists()
    for place in ("", "postgresql+asyncpg://me:s3cret@h/db", "POSTGRESQL://me:s3cret@h/db"):
        done = copy(place, tmp_path / "new", tmp_path)
        assert (done.returncode, done.stderr) == (
            1,
            "Error: Nothing was copied: name a state folder, or an address that begins with postgresql://.\n",
        )
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "ostler.db").write_text("no database" * 100)
    assert "cannot be used (file is not a database)" in copy(damaged, tmp_path / "new", tmp_path).stderr


def test_doctor_looks_at_the_database_of_the_settings(
    state_dir: Path, cluster: Cluster, database: tuple[str, str]
) -> None:
    state_dir.mkdir()

    def doctor(address: str) -> str:
        env = clean_env(state_dir, {"OSTLER_DATABASE": address})
        command = [*OSTLER, "doctor", "--state-dir", str(state_dir)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120).stdout

    assert f"PostgreSQL at 127.0.0.1:{cluster.port} can be reached" in doctor(database[1])
    assert "PostgreSQL at 127.0.0.1:9 cannot be reached" in doctor("postgresql://127.0.0.1:9/ostler")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://host/name", "must be the address of a PostgreSQL database"),
        ("postgresql://me:secret@127.0.0.1:9/none", "cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_is_refused_in_one_line(state_dir: Path, address: str, said: str) -> None:
    state_dir.mkdir()
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(state_dir), "--database", address]
    done = subprocess.run(
        command, env=clean_env(state_dir, {}), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
