"""Work that must not stay half done: what undoes it runs if it fails or is cancelled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any


@contextmanager
def undone_by(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` unless the block comes to its end."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        stack.pop_all()


@asynccontextmanager
async def async_undone_by(undo: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Await `undo` unless the block comes to its end; not even a cancellation cuts it short."""

    async def whole() -> None:
        await asyncio.shield(undo())

    async with AsyncExitStack() as stack:
        stack.push_async_callback(whole)
        yield
        stack.pop_all()
