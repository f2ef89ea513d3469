"""A token of one session opens the fleet of that session and nothing else."""

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer
from tests.support.talk import Talk


def _client(server: RunningServer, token: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=60)


def _token(talk: Talk, **more: float) -> str:
    answer = talk.api.post("/connect/tokens", json={"sessionId": talk.id, **more})
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


def test_a_token_of_a_session_opens_its_fleet_and_nothing_else(server: RunningServer, api: httpx.Client) -> None:
    mine, other = Talk(api), Talk(api)
    for talk, host in ((mine, "lin-01"), (other, "win-01")):
        api.post(f"/relay/{talk.id}/{host}/status", json={"state": "joined", "os": "x"}).raise_for_status()
    with _client(server, _token(mine)) as follower:
        for path in (f"/sessions/{mine.id}", f"/sessions/{mine.id}/events"):
            assert follower.get(path).status_code == 200
        note = [{"type": "note", "message": "here"}]
        assert follower.post(f"/sessions/{mine.id}/events/ingest", json=note).status_code == 200
        assert follower.post(f"/relay/{mine.id}/lin-01/stdout", content=b"out").status_code == 200
        ask = {"sessionId": mine.id, "hosts": ["lin-01"], "timeoutSec": 0}
        assert follower.post("/connect/handshake", json=ask).status_code == 200
        assert [each["name"] for each in follower.get("/followers").json()["items"]] == ["lin-01"]
        refused = [
            follower.get(f"/sessions/{other.id}"),
            follower.get(f"/sessions/{other.id}/events"),
            follower.post(f"/sessions/{other.id}/events/ingest", json=note),
            follower.post(f"/relay/{other.id}/win-01/stdout", content=b"out"),
            follower.post(f"/relay/{other.id}/win-01/control", json={"type": "close"}),
            follower.post("/connect/handshake", json={**ask, "sessionId": other.id}),
            follower.post("/connect/handshake/ack", json={"sessionId": other.id, "host": "win-01"}),
            follower.get("/connect/socks", params={"sessionId": other.id}),
            follower.get("/connect/socks", params=[("sessionId", mine.id), ("sessionId", other.id)]),
            follower.get("/connect/socks", params={"sessionId": mine.id, "session_id": other.id}),
            follower.post("/connect/tokens", json={"sessionId": mine.id}),
            follower.post(f"/sessions/{mine.id}/messages", json={"message": "no"}),
            follower.delete(f"/sessions/{mine.id}"),
            follower.get("/sessions"),
            follower.post("/sessions", json={"agent": "mock"}),
            follower.post("/connect/keys", json={"providers": ["none"]}),
        ]
        for answer in refused:
            assert_problem(answer, "forbidden")


@pytest.mark.parametrize(("at", "letter"), [(0, "A"), (-1, "!"), (20, "")])
def test_a_token_that_was_changed_opens_nothing(server: RunningServer, api: httpx.Client, at: int, letter: str) -> None:
    letters = list(_token(Talk(api)).removeprefix("ostlersession_"))
    letters[at] = letter
    with _client(server, f"ostlersession_{''.join(letters)}") as stranger:
        assert stranger.get("/followers").status_code == 401


def test_a_token_ends_with_its_time(server: RunningServer, api: httpx.Client) -> None:
    talk = Talk(api)
    assert_problem(api.post("/connect/tokens", json={"sessionId": talk.id, "seconds": 0.5}), "invalid_request")
    assert_problem(api.post("/connect/tokens", json={"sessionId": "nobody"}), "session_not_found")
    with _client(server, _token(talk, seconds=1)) as follower:
        wait_until(lambda: "expired at" in follower.get("/followers").text, "it is good no more")


def test_a_follower_that_leaves_is_a_follower_no_longer(api: httpx.Client) -> None:
    talk = Talk(api)
    for host in ("lin-01", "lin-02"):
        api.post(f"/relay/{talk.id}/{host}/status", json={"state": "joined", "os": "linux"}).raise_for_status()
    api.post(f"/relay/{talk.id}/lin-01/status", json={"state": "left"}).raise_for_status()
    found = [
        each["name"] for each in api.get("/followers").json()["items"] if each["sessions"][0]["sessionId"] == talk.id
    ]
    assert found == ["lin-02"]


def test_a_newer_stream_of_a_follower_ends_the_older_one(api: httpx.Client) -> None:
    talk = Talk(api)
    control = f"/relay/{talk.id}/lin-01/control"
    with api.stream("GET", control) as older, api.stream("GET", control) as newer:
        lines = newer.iter_lines()
        assert "hello" in next(lines)
        rest = list(older.iter_lines())  # it ends
        assert "hello" in rest[0]
        api.post(control, json={"type": "close"}).raise_for_status()
        assert '{"type":"close"}' in next(line for line in lines if line.startswith("data:"))
