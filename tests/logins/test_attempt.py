"""A login that could not even begin stands in the way of no other one."""

import asyncio

import pytest

from ostler.runner.logins.attempt import Attempt, Course


async def verified(_: str) -> None:
    raise AssertionError("nothing began")


async def refused() -> Course:
    raise RuntimeError("the runtime does not start it")


async def slow() -> Course:
    await asyncio.Event().wait()
    raise AssertionError("nobody lets it begin")


async def test_one_whose_agent_cannot_be_started_is_over() -> None:
    cleared: list[str] = []
    attempt = Attempt("guest", verified, lambda: cleared.append("home"))
    with pytest.raises(RuntimeError):
        await attempt.start(refused)
    assert (attempt.is_over, cleared) == (True, ["home"])


async def test_one_whose_starter_leaves_before_the_agent_has_begun_is_over() -> None:
    cleared: list[str] = []
    attempt = Attempt("guest", verified, lambda: cleared.append("home"))
    starting = asyncio.create_task(attempt.start(slow))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert (attempt.is_over, attempt.shown().step, cleared) == (True, "cancelled", ["home"])
