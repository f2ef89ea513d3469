"""What is stored about a session is exactly what its log adds up to."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest

from ostler.server.sessions.log.feed import Feed
from ostler.server.sessions.log.folds import Happened
from ostler.server.sessions.log.state import SessionState, apply, is_waited_for
from ostler.server.sessions.log.statuses import TERMINAL, TRANSITIONS
from ostler.server.store.bursts import unpack
from ostler.wire.events import AnyEvent, SessionInfoData, SessionStatus, SessionStatusData, UnknownEvent, decode_event
from ostler.wire.workspace_events import SessionForkedData, SessionHandoffData, SessionLimitData, SessionRewoundData
from tests.support.serving import running_server
from tests.support.talk import Talk


def folded(agent: str, bodies: list[bytes]) -> SessionState:
    state = SessionState()
    for body in bodies:
        event: Any = decode_event(body)
        happened = Happened(
            session_id=event.session_id,
            agent=agent,
            sequence=event.sequence,
            time=event.time,
            type=event.type,
            data=event.data,
        )
        state = apply(state, happened)
    return state


def test_the_stored_state_of_every_session_is_the_fold_of_its_log(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        busy = Talk(api, labels={"a": "b"})
        busy.turn("mock: title Named\nmock: say hi\nmock: usage 7 5 0.1\nmock: write a.md a\\n\nmock: error no")
        busy.send("mock: wait 600")
        busy.send("mock: say queued")
        asking = Talk(api)
        asking.send("mock: permission x")
        asked = asking.until_type("permission.requested")["data"]["permission_id"]
        asking.post(f"/permissions/{asked}/reply", reply="always")
        asking.until_type("turn.ended")
        Talk(api).post("/stop")
        Talk(api).post("/pause")
    with closing(sqlite3.connect(state_dir / "ostler.db")) as database:
        rows = database.execute("SELECT id, agent, state FROM sessions").fetchall()
        for session_id, agent, stored in rows:
            query = "SELECT session, packing, body, raw FROM chunks WHERE session = ? ORDER BY last"
            bodies = [line for row in database.execute(query, (session_id,)) for line in unpack(*row)[0]]
            assert msgspec.json.decode(stored, type=SessionState) == folded(agent, bodies)
    assert len(rows) == 4


def test_every_status_has_its_transitions_and_only_terminal_ones_have_none() -> None:
    assert set(TRANSITIONS) == set(get_args(SessionStatus))
    assert {status for status, following in TRANSITIONS.items() if not following} == TERMINAL


def test_an_event_from_the_future_is_kept_whole() -> None:
    body = b'{"event_id":"e","sequence":1,"time":"t","session_id":"s","type":"moon.landed","data":{"crew":3}}'
    event = decode_event(body)
    assert isinstance(event, UnknownEvent)
    assert (event.type, event.data) == ("moon.landed", {"crew": 3})


def test_a_known_event_with_a_value_from_the_future_is_kept_too() -> None:
    envelope = b'"event_id":"e","sequence":1,"time":"t","session_id":"s","source":"daemon","synthetic":true'
    body = b'{"type":"session.status",%b,"data":{"status":"dreaming"}}' % envelope
    assert isinstance(decode_event(body), UnknownEvent)


@pytest.mark.parametrize("kind", get_args(AnyEvent))
def test_every_event_type_has_a_tag_and_a_sentence(kind: Any) -> None:
    assert kind.__struct_config__.tag
    assert kind.__doc__.strip().endswith((".", "failed."))


async def test_a_feed_keeps_nothing_while_nobody_watches_and_little_for_a_slow_client() -> None:
    feed = Feed(last=0, limit_bytes=1000)
    feed.publish([b"x" * 10] * 5)
    assert feed.after(0, 10_000) is None
    feed.watch()
    feed.publish([b"y" * 10] * 50)
    assert feed.after(5, 10_000) == [b"y" * 10] * 50
    feed.publish([b"z" * 10] * 90)
    assert feed.after(5, 10_000) is None
    assert feed.after(144, 10_000) == [b"z" * 10]
    feed.unwatch()
    assert feed.after(144, 10_000) is None


REWOUND = SessionRewoundData(turn=1, sequence=1, snapshot_id="snp_1", workspace_id="wsp_1")
HANDOFF = SessionHandoffData(status="requested", from_agent="mock", to_agent="codex")
FORKED = SessionForkedData(parent_id="ses_0", turn=1, snapshot_id="snp_1")


@pytest.mark.parametrize(
    ("kind", "data", "waits"),
    [
        ("session.handoff", HANDOFF, False),
        ("session.rewound", REWOUND, False),
        ("session.forked", FORKED, False),
        ("session.status", SessionStatusData(status="stopping"), False),
        ("session.status", SessionStatusData(status="paused"), True),
        ("session.info", SessionInfoData(archived=True), False),
        ("session.info", SessionInfoData(title="Renamed"), True),
    ],
)
def test_what_a_person_decides_ends_the_waiting_for_a_limit(kind: str, data: Any, *, waits: bool) -> None:
    limit = SessionLimitData(status="reached", until="2030-01-01T00:00:00.000Z", waits=True, attempt=1, acted=False)
    before = SessionState(status="running", limit=limit)
    after = apply(before, Happened(session_id="ses_1", agent="mock", sequence=9, time="", type=kind, data=data))
    assert is_waited_for(after.limit) is waits
