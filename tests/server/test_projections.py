"""Whatever happened in a session, every projection tells it in order, in its own words, and closes what it opens."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from ostler.server.dialects import PROJECTIONS
from ostler.server.dialects.formats import Format, Span, Subject
from ostler.wire.events import AnyEvent
from tests.server.event_logs import logs

SUBJECT = Subject(session_id="ses_1", key="my-chat", agent="mock")
RANDOM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
Message = dict[str, Any]


def project(found: Format, log: list[AnyEvent]) -> list[Message]:
    projection = found.begin(SUBJECT)
    return [json.loads(msgspec.json.encode(message)) for event in log for message in projection.feed(event)]


def is_listed(kind: str, found: Format) -> bool:
    patterns = [name[:-1] for name in found.kinds if name.endswith("*")]
    return kind in found.kinds or any(kind.startswith(pattern) for pattern in patterns)


def left_open(span: Span, tag: str, messages: list[Message]) -> set[Any]:
    """What was opened and not closed; fails where something grows that is not open or closes that never was."""
    opened: set[Any] = set()
    known: set[Any] = set()
    for message in messages:
        place = message.get(span.id) if span.id else None
        if message[tag] == span.opens:
            assert place not in opened, f"{message} opens a second time"
            opened.add(place)
            known.add(place)
        assert message[tag] not in span.grows or place in opened, f"{message} grows what is not open"
        if message[tag] in span.closes:
            assert place in known, f"{message} closes what was never opened"
            opened.discard(place)
    return opened


@pytest.mark.parametrize("name", PROJECTIONS)
@given(log=logs())
@RANDOM
def test_a_projection_uses_only_the_kinds_it_lists(name: str, log: list[AnyEvent]) -> None:
    found = PROJECTIONS[name]
    kinds = {message[found.tag] for message in project(found, log)}
    assert {kind for kind in kinds if not is_listed(kind, found)} == set()


@pytest.mark.parametrize("name", PROJECTIONS)
@given(log=logs())
@RANDOM
def test_a_projection_closes_what_it_opens(name: str, log: list[AnyEvent]) -> None:
    found = PROJECTIONS[name]
    messages = project(found, log)
    assert [left_open(span, found.tag, messages) for span in found.spans] == [set() for _ in found.spans]


@pytest.mark.parametrize("name", PROJECTIONS)
@given(log=logs())
@RANDOM
def test_a_projection_tells_things_in_the_order_of_the_log(name: str, log: list[AnyEvent]) -> None:
    told = "".join(json.dumps(message) for message in project(PROJECTIONS[name], log))
    places = [told.index(text) for number in range(len(log)) if (text := f"<{number}>") in told]
    assert places == sorted(places)


@pytest.mark.parametrize("name", PROJECTIONS)
@given(log=logs())
@RANDOM
def test_a_projection_of_the_same_log_is_the_same(name: str, log: list[AnyEvent]) -> None:
    assert project(PROJECTIONS[name], log) == project(PROJECTIONS[name], log)
