"""The daemon API tells everything that recorded agents did, and what the log has besides."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.conformance.behaviours import BY_ID
from ostler.conformance.suite import play
from ostler.server.dialects.daemon.projection import EVENT_TYPES, daemon_event
from ostler.server.store.records import StoredEvent
from ostler.wire.events import (
    EVENTS,
    ItemCompletedData,
    ItemStartedData,
    TerminalOutput,
    TerminalOutputData,
    UnknownEvent,
)
from ostler.wire.items import Item
from tests.conformance.replay import ReplayStage
from tests.conformance.test_recorded import AGENTS, GRID
from tests.support.recorded import Recording

SAID_BY_TYPE = {"action", "type", "severity"}
"""Fields whose words the daemon API has its own for; the same word stands in what it shows beside."""


def told(event: Any) -> dict[str, Any]:
    stored = StoredEvent(event.sequence, msgspec.json.encode(event), raw=b'{"native": true}')
    return dict(msgspec.json.decode(daemon_event(stored, key="mine", names={})))


def leaves(value: Any) -> Iterator[str]:
    """Every word and number in a document."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from (leaf for leaf in leaves(each) if name not in SAID_BY_TYPE)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif value not in (None, ""):
        yield str(value)


def lost(event: Any) -> Counter[str]:
    """What the log has of an event and the daemon API does not."""
    return Counter(leaves(msgspec.json.decode(msgspec.json.encode(event.data)))) - Counter(leaves(told(event)["data"]))


@pytest.mark.parametrize("recording", GRID)
async def test_nothing_that_an_agent_did_is_lost(recording: Recording, tmp_path: Path) -> None:
    stage = ReplayStage(AGENTS[recording.agent], recording, tmp_path, patience=10.0)
    assert await play(BY_ID[recording.case], stage) is None
    for number, draft in enumerate(stage.drafts, 1):
        event = EVENTS[draft.type](
            event_id=f"evt_{number}",
            sequence=number,
            time="2026-01-01T00:00:00Z",
            session_id="ses_1",
            source=draft.source,
            synthetic=draft.synthetic,
            data=draft.data,  # type: ignore[call-arg]  # every kind of event has its own
        )
        shown = told(event)
        assert shown["type"] in EVENT_TYPES
        same = ("event_id", "sequence", "time", "source", "synthetic")
        assert {name: shown[name] for name in same} == {name: getattr(event, name) for name in same}
        assert shown["raw"] == {"native": True}
        assert lost(event) == Counter()


def test_an_event_of_a_newer_server_is_an_unknown_item() -> None:
    event = UnknownEvent(
        event_id="evt_1",
        sequence=7,
        time="2026-01-01T00:00:00Z",
        session_id="ses_1",
        type="moon.landed",
        data={"crew": ["a", "b"]},
    )
    shown = told(event)
    assert (shown["type"], shown["data"]["item"]["kind"]) == ("item.completed", "unknown")
    assert shown["data"]["item"]["content"] == [
        {"type": "json", "json": {"type": "moon.landed", "data": {"crew": ["a", "b"]}}}
    ]


def test_output_after_the_end_of_its_call_is_a_status_below_it_and_no_delta() -> None:
    about = {"event_id": "evt_1", "sequence": 7, "time": "2026-01-01T00:00:00Z", "session_id": "ses_1"}
    more = {"source": "agent", "synthetic": False}
    output = TerminalOutputData(stream="stdout", data="tick\n", item_id="itm_call", late=True)
    shown = told(TerminalOutput(**about, **more, data=output))  # type: ignore[arg-type]  # the names are those of an event
    assert shown["type"] == "item.completed"
    item = shown["data"]["item"]
    assert (item["kind"], item["parent_id"], item["content"][0]["label"]) == ("status", "itm_call", "terminal.output")
    assert item["content"][1]["json"]["data"] == "tick\n"


@pytest.mark.parametrize("kind", ["item.started", "item.completed"])
def test_an_event_that_only_an_agent_has_is_a_status_with_its_name(kind: str) -> None:
    item = Item(item_id="itm_1_moment1", kind="status", status="completed", content=(), native_item_id="pi.turn_start")
    about = {"event_id": "evt_1", "sequence": 7, "time": "2026-01-01T00:00:00Z", "session_id": "ses_1"}
    data = ItemStartedData(item=item) if kind == "item.started" else ItemCompletedData(item=item)
    event = EVENTS[kind](**about, source="agent", synthetic=False, data=data)  # type: ignore[arg-type, call-arg]  # every kind of event has its own
    assert told(event)["data"]["item"]["content"] == [{"type": "status", "label": "pi.turn_start"}]
