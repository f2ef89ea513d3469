"""The live end of a log keeps little, and whoever is behind it is told to read the store."""

import pytest

from ostler.server.sessions.log.feed import Feed, frame
from ostler.server.sessions.log.session_log import ProjectFeed
from ostler.server.store.records import Append


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("ostler.server.sessions.log.feed.time.monotonic", lambda: now[0])
    return now


def watched(limit: int = 1000) -> Feed:
    feed = Feed(last=0, limit_bytes=limit)
    feed.watch()
    return feed


def test_what_is_old_is_dropped_while_new_frames_come(clock: list[float]) -> None:
    feed = watched()
    for number in range(1, 61):  # one a second
        feed.publish([b"%d" % number])
        clock[0] += 1
    kept = [offset for offset in range(61) if feed.after(offset, 1000) is not None]
    assert kept == list(range(kept[0], 61))
    assert 10 <= 60 - kept[0] <= 22
    assert feed.after(58, 1000) == [b"59", b"60"]


def test_frames_above_the_limit_are_dropped_at_once(clock: list[float]) -> None:
    feed = watched(limit=1000)
    feed.publish([b"x" * 100] * 10)
    assert feed.after(0, 10_000) == [b"x" * 100] * 10
    feed.publish([b"y" * 100])
    assert feed.after(0, 10_000) is None
    assert feed.after(10, 10_000) == [b"y" * 100]
    clock[0] += 100
    feed.publish([b"z"])
    assert feed.after(11, 10_000) == [b"z"]


def test_nothing_is_kept_for_nobody() -> None:
    feed = watched()
    feed.publish([b"a"])
    feed.unwatch()
    assert feed.after(0, 1000) is None
    assert feed.last == 1


def burst(*events: bytes) -> Append:
    return Append(session_id="ses_a", epoch=1, time="", first=1, events=events, raws=(None,) * len(events), change=None)


def test_events_of_another_project_lie_between_those_of_this_one() -> None:
    project = ProjectFeed(Feed(last=10, limit_bytes=1000), lambda: None, lambda: None)
    project.feed.watch()
    project.publish(burst(b"11", b"12"), 12)
    assert project.feed.after(10, 1000) == [frame(11, b"11"), frame(12, b"12")]
    project.publish(burst(b"15"), 15)
    assert (project.feed.last, project.feed.after(14, 1000)) == (15, [frame(15, b"15")])
    assert project.feed.after(12, 1000) is None  # what lies between is for the store to say
