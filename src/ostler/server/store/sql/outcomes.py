"""What became of writes, told to those who wait for them."""

import asyncio
from typing import Any

Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


def settle(outcomes: list[Outcome]) -> None:
    """Give each its result or its error; who was cancelled waits no more."""
    for future, result, error in outcomes:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
