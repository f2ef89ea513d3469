"""Whatever happened in a session, every projection tells it in order, in its own words, and closes what it opens."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from ostler.server.dialects import PROJECTIONS
from ostler.server.dialects.acp.updates import AcpUpdates
from ostler.server.dialects.ai_sdk.profile import Profile, Version
from ostler.server.dialects.ai_sdk.projection import UiProjection
from ostler.server.dialects.daemon.projection import EVENT_TYPES, daemon_event
from ostler.server.dialects.flat.projection import LINES
from ostler.server.dialects.formats import Format, Span, Subject
from ostler.server.store import bursts
from ostler.server.store.records import StoredEvent
from ostler.wire.events import AnyEvent, UnknownEvent
from ostler.wire.parts import ImagePart
from tests.server.dialects.event_logs import Writer, call, conversations, item, logs, result, typed
from tests.support.spoken import SPOKEN

SUBJECT = Subject(session_id="ses_1", key="my-chat", agent="mock")
RANDOM = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
Message = dict[str, Any]


class DaemonApi:
    """The daemon API rewrites stored bytes; here it is fed like the others."""

    def __init__(self, _: Subject) -> None:
        """Every event stands for itself."""

    def feed(self, event: AnyEvent | UnknownEvent) -> list[Any]:
        stored = StoredEvent(event.sequence, msgspec.json.encode(event))
        shown = daemon_event(stored, key=SUBJECT.key, names={})
        return [] if shown is None else [json.loads(shown)]


def chat(version: Version, *more: str) -> Format:
    """The stream of one client of the AI SDK that knows more kinds of chunks."""

    def begin(subject: Subject) -> UiProjection:
        return UiProjection(subject, Profile(version=version))

    return replace(PROJECTIONS["ui"], begin=begin, kinds=PROJECTIONS["ui"].kinds.union(more))


EVERY = {
    **PROJECTIONS,
    "ui-6": chat("6", "tool-approval-request", "tool-output-denied"),
    "ui-7": chat("7", "tool-approval-request", "tool-output-denied", "tool-approval-response"),
    "daemon": Format(about="the daemon API", begin=DaemonApi, tag="type", kinds=EVENT_TYPES, is_log=True),
}


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


@pytest.mark.parametrize("name", EVERY)
@given(log=logs())
@RANDOM
def test_a_projection_uses_only_the_kinds_it_lists(name: str, log: list[AnyEvent]) -> None:
    found = EVERY[name]
    kinds = {message[found.tag] for message in project(found, log)}
    assert {kind for kind in kinds if not is_listed(kind, found)} == set()


@pytest.mark.parametrize("name", EVERY)
@given(log=logs())
@RANDOM
def test_a_projection_closes_what_it_opens(name: str, log: list[AnyEvent]) -> None:
    found = EVERY[name]
    messages = project(found, log)
    assert [left_open(span, found.tag, messages) for span in found.spans] == [set() for _ in found.spans]


@pytest.mark.parametrize("name", EVERY)
@given(log=logs())
@RANDOM
def test_a_projection_tells_things_in_the_order_of_the_log(name: str, log: list[AnyEvent]) -> None:
    told = "".join(json.dumps(message) for message in project(EVERY[name], log))
    places = [told.index(text) for number in range(len(log)) if (text := f"<{number}>") in told]
    assert places == sorted(places)


@pytest.mark.parametrize("name", EVERY)
@given(log=logs())
@RANDOM
def test_a_projection_of_the_same_log_is_the_same(name: str, log: list[AnyEvent]) -> None:
    assert project(EVERY[name], log) == project(EVERY[name], log)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "flat"])
@given(talk=conversations())
@RANDOM
def test_what_an_agent_said_is_the_same_to_the_byte(name: str, talk: tuple[list[AnyEvent], str]) -> None:
    log, said = talk
    assert SPOKEN[name.partition("-")[0]](project(EVERY[name], log)) == said


@pytest.mark.parametrize("name", EVERY)
@given(log=logs())
@RANDOM
def test_a_projection_can_begin_with_any_turn(name: str, log: list[AnyEvent]) -> None:
    found = EVERY[name]
    begins = [place for place, event in enumerate(log) if event.type == "turn.started"]
    for number, place in enumerate(begins):
        whole, part = found.begin(SUBJECT), found.begin(replace(SUBJECT, turns_before=number))
        for event in log[:place]:
            whole.feed(event)
        if [event.type for event in log[:place] if event.type.startswith("turn.")][-1:] != ["turn.started"]:
            assert [part.feed(event) for event in log[place:]] == [whole.feed(event) for event in log[place:]]


def test_what_is_kept_as_lines_is_what_flat_lines_are_made_of() -> None:
    lines = {str(kind.__struct_config__.tag) for kind in LINES}  # type: ignore[attr-defined]  # they are structs
    assert lines == {*bursts.LINES, "item.completed", "host.log"}  # output is in the log alone


def test_a_picture_of_the_agent_is_a_link_in_an_editor() -> None:
    log = Writer()
    log.turn()
    log.completed(item("1", "message", ImagePart(path="/state/dot.png", mime="image/png"), status="completed"))
    updates = AcpUpdates(SUBJECT)
    [told] = [update for event in log.events for update in updates.feed(event)]
    assert told["sessionUpdate"] == "agent_message_chunk"
    assert told["content"] == {"type": "resource_link", "uri": "file:///state/dot.png", "name": "dot.png"}


@pytest.mark.parametrize("name", ["workflow", "acp", "agui"])
def test_a_call_whose_input_grows_is_told_whole_before_it_is_done(name: str) -> None:
    log = Writer()
    log.turn()
    log.started(call("1", "search", ""))
    for piece in ('{"query":', ' "tea', '"}'):
        log.grew("1", typed("1", "search", piece))
    before = project(EVERY[name], log.events)
    assert "tea" in json.dumps(before)
    log.completed(call("1", "search", '{"query": "tea"}', status="completed"))
    log.completed(result("1", "3 results"))
    after = project(EVERY[name], log.events)
    assert after[: len(before)] == before
    assert name == "acp" or len([message for message in after if "tea" in str(message)]) == 1


@pytest.mark.parametrize("name", ["workflow", "agui"])
def test_a_picture_that_an_agent_shows_has_an_address(name: str) -> None:
    log = Writer()
    log.turn()
    log.completed(item("1", "message", ImagePart(path="a b.png", mime="image/png"), status="completed"))
    told = json.dumps(project(EVERY[name], log.events))
    assert "/api/v1/sessions/my-chat/files/image?path=a%20b.png" in told
    assert "image/png" in told
