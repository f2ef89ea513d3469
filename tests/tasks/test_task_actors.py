"""Going back, forking and handing over name who wanted it; what is kept after each turn names nobody."""

from pathlib import Path

import httpx

from tests.support.ordering import Json, events, new_session, say, settled


def _named(found: list[Json]) -> list[tuple[str, str | None]]:
    return [(event["type"], event.get("actor")) for event in found]


def test_what_somebody_does_with_the_files_names_them(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    for turn in (1, 2):
        say(api, session, f"mock: write a.txt {turn}")
    settled(api, session, turn=2)
    assert set(_named(events(api, session, "snapshot.created", "workspace.created"))) == {
        ("snapshot.created", None),
        ("workspace.created", None),
    }
    api.post(f"/sessions/{session}/rewind", json={"turn": 1}).raise_for_status()
    assert _named(events(api, session, "session.rewound")) == [("session.rewound", "local")]
    fork = api.post(f"/sessions/{session}/fork", json={}).json()["id"]
    assert _named(events(api, fork, "session.started", "turn.started", "session.forked")) == [
        ("session.started", "local"),
        ("turn.started", "local"),
        ("session.forked", "local"),
    ]
    api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).raise_for_status()
    assert _named(events(api, session, "delivery.completed")) == [("delivery.completed", "local")]
