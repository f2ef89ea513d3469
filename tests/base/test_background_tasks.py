"""Background work has an owner: it is held, reported when it fails, and awaited at the end, but not for ever."""

import asyncio
import logging

import pytest

from ostler.base.errors import SessionNotFound
from ostler.base.logs import Log
from ostler.base.tasks import Background

_LONG = 30.0
_SHORT = 0.05


def background() -> Background:
    return Background(Log("ostler.test"), "work.failed", session_id="ses_1")


async def _fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "level", "more"),
    [
        pytest.param(ValueError("no"), logging.ERROR, {}, id="crash"),
        pytest.param(
            SessionNotFound(session="a"), logging.WARNING, {"reason": str(SessionNotFound(session="a"))}, id="ours"
        ),
    ],
)
def test_what_fails_is_reported_with_whose_it_was(
    caplog: pytest.LogCaptureFixture, error: Exception, level: int, more: dict[str, str]
) -> None:
    async def run() -> int:
        tasks = background()
        tasks.spawn(_fail(error), turn="trn_1")
        await tasks.wait()
        return len(tasks)

    assert asyncio.run(run()) == 0
    (record,) = caplog.records
    assert (record.levelno, record.message) == (level, "work.failed")
    assert record.__dict__["fields"] == {"session_id": "ses_1", "turn": "trn_1", **more}
    assert bool(record.exc_info) == (level == logging.ERROR)


def test_closing_waits_until_the_cleaning_up_is_done_and_for_what_that_begins() -> None:
    done: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            done.append("later")

    async def work(tasks: Background) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.spawn(tidy())
            await asyncio.sleep(0)
            done.append("first")

    async def run() -> int:
        tasks = background()
        tasks.spawn(work(tasks))
        await asyncio.sleep(0)
        await tasks.aclose(seconds=_LONG)
        return len(tasks)

    assert asyncio.run(run()) == 0
    assert done == ["first", "later"]


def test_closing_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn(released: asyncio.Event) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    async def run() -> None:
        tasks, released = background(), asyncio.Event()
        tasks.spawn(stubborn(released))
        await asyncio.sleep(0)
        await tasks.aclose(seconds=_SHORT)
        released.set()
        await tasks.wait()

    asyncio.run(run())
    (record,) = caplog.records
    assert record.message == "tasks.still_running"
    assert record.__dict__["fields"] == {"count": 1, "seconds": _SHORT, "session_id": "ses_1"}
