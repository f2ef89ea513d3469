"""What a person has seen of sessions is the same on all of their devices, and of nobody else's concern."""

import httpx

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until


def _ended(api: httpx.Client, message: str) -> str:
    session = str(api.post("/sessions", json={"agent": "mock"}).json()["id"])
    api.post(f"/sessions/{session}/messages", json={"message": message}).raise_for_status()
    wait_until(lambda: api.get(f"/sessions/{session}").json().get("lastTurnOutcome"), "the turn is over")
    return session


def _marks(api: httpx.Client) -> dict[str, tuple[int, bool]]:
    found = api.get("/reads").json()["items"]
    return {mark["sessionId"]: (mark["turns"], mark["failed"]) for mark in found}


def test_what_was_seen_is_told_to_its_actor_alone_and_ends_with_the_session(api: httpx.Client) -> None:
    since = api.get("/reads").json()["since"]
    done, failed = _ended(api, "mock: say Done."), _ended(api, "mock: error The disk is full")
    assert api.post(f"/sessions/{done}/read").json()["turns"] == 1
    api.post(f"/sessions/{failed}/read", json={"turns": 0, "failed": False}).raise_for_status()
    assert {done: (1, False), failed: (0, False)}.items() <= _marks(api).items()
    api.post(f"/sessions/{failed}/read").raise_for_status()
    assert _marks(api)[failed] == (1, True)
    key = api.post("/api-keys", json={"name": "phone", "role": "viewer"}).json()["key"]
    with httpx.Client(base_url=api.base_url, headers={"authorization": f"ApiKey {key}"}, timeout=60) as other:
        assert _marks(other) == {}
        assert other.get("/reads").json()["since"] >= since
        other.post(f"/sessions/{done}/read").raise_for_status()
    api.delete(f"/sessions/{done}").raise_for_status()
    assert done not in _marks(api)
    assert api.get("/reads").json()["since"] == since
    assert_problem(api.post(f"/sessions/{done}/read"), "session_not_found")
