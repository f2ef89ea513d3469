"""What a server holds of a request that it may have to pass on."""

import asyncio
import gc
import weakref
from typing import Any, cast

import pytest

from ostler.server.api.edge.asgi import Message, Receive, Scope, Send
from ostler.server.api.edge.relay import Relay
from ostler.server.api.edge.stream_limit import OpenStreams
from ostler.server.api.problems import LEFT
from ostler.server.api.services import Counters
from ostler.server.store.errors import StaleOwner
from ostler.server.store.peers import Peers


class Piece(bytearray):
    """A part of a body that can be watched."""


def relay_to(app: Any) -> Relay:
    return Relay(app, cast(Peers, None), Counters(streams=OpenStreams(10)), None)


async def test_a_stream_does_not_hold_the_body_that_it_was_asked_with() -> None:
    pieces = [Piece(b"x" * 1000) for _ in range(3)]
    watched = [weakref.ref(piece) for piece in pieces]
    answering, over = asyncio.Event(), asyncio.Event()

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(2):
            await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["body"] == b"x" * 1000  # the rest of it comes while it is answered
        answering.set()
        await over.wait()

    async def receive() -> Message:
        return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

    async def send(_message: Message) -> None:
        return

    asked = asyncio.create_task(relay_to(app)({"type": "http"}, receive, send))
    await answering.wait()
    gc.collect()
    assert [piece() for piece in watched] == [None] * 3
    over.set()
    await asked


@pytest.mark.parametrize("read", [0, 1, 3])
async def test_a_request_that_is_tried_again_has_its_whole_body(read: int) -> None:
    bodies = [b"a", b"b", b"c"]
    seen: list[bytes] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if "tried" not in tries:
            tries.append("tried")
            for _ in range(read):
                await receive()
            scope[LEFT] = StaleOwner("ses_1")
            return
        for _ in range(3):
            seen.append((await receive())["body"])
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Message:
        if not bodies:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": bodies.pop(0), "more_body": bool(bodies)}

    async def send(_message: Message) -> None:
        return

    tries: list[str] = []
    await relay_to(app)({"type": "http"}, receive, send)
    assert seen == [b"a", b"b", b"c"]
