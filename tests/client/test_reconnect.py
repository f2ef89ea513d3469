"""A stream of events looks whole however badly its connections behave."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from ostler.client import (
    AsyncClient,
    Client,
    ClientError,
    ConnectionLost,
    MissingEvents,
    OstlerApiError,
    ServerUnreachable,
)
from ostler.wire.events import UnknownEvent
from tests.client.scripted import Received, after, ended, event, log, problem, reply, scripted_server, stream

Read = Callable[..., Awaitable[list[int]]]


async def read_async(url: str, *, silence: float = 10, reconnect_for: float | None = None) -> list[int]:
    async with AsyncClient(url, silence=silence) as client:
        await client.system.health()
        return [event.sequence async for event in client.events.stream("ses_1", reconnect_for=reconnect_for)]


def _read_sync(url: str, silence: float, reconnect_for: float | None) -> list[int]:
    with Client(url, silence=silence) as client:
        client.system.health()
        return [event.sequence for event in client.events.stream("ses_1", reconnect_for=reconnect_for)]


async def read_sync(url: str, *, silence: float = 10, reconnect_for: float | None = None) -> list[int]:
    return await asyncio.to_thread(_read_sync, url, silence, reconnect_for)


@pytest.fixture(params=[read_async, read_sync], ids=["async", "sync"])
def read(request: pytest.FixtureRequest) -> Read:
    chosen: Read = request.param
    return chosen


def healthy(_request: Received) -> bytes:
    return reply(200, {"status": "ok"})


@pytest.mark.parametrize("seed", range(5))
async def test_connections_cut_at_random_points_lose_and_repeat_nothing(read: Read, seed: int) -> None:
    whole, dice = log(60), random.Random(seed)

    def cut_somewhere(request: Received) -> bytes:
        rest = after(whole, request.offset)
        return stream(rest[: dice.randint(0, len(rest))])

    def all_of_it(request: Received) -> bytes:
        return stream(after(whole, request.offset))

    async with scripted_server([healthy, *[cut_somewhere] * 4, all_of_it]) as server:
        assert await read(server.url) == list(range(1, 61))


async def test_events_sent_again_are_dropped(read: Read) -> None:
    whole = log(9)

    async with scripted_server(
        [healthy, lambda _: stream(whole[: len(whole) // 2]), lambda _: stream(whole)]
    ) as server:
        assert await read(server.url) == list(range(1, 10))


async def test_a_skipped_number_is_fetched_again(read: Read) -> None:
    holed = event(1) + event(3) + ended(4)

    async with scripted_server([healthy, lambda _: stream(holed), lambda r: stream(after(log(4), r.offset))]) as server:
        assert await read(server.url) == [1, 2, 3, 4]
        assert server.requests[-1].offset == 1


async def test_a_number_that_stays_missing_is_an_error(read: Read) -> None:
    async with scripted_server([healthy, lambda _: stream(event(1) + event(3))]) as server:
        with pytest.raises(MissingEvents, match="Event 2 is missing"):
            await read(server.url)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "token_invalid"), (404, "session_not_found"), (422, "unprocessable")]
)
async def test_a_refusal_is_raised_at_once(read: Read, status: int, code: str) -> None:
    async with scripted_server([healthy, lambda _: problem(status, code)]) as server:
        with pytest.raises(OstlerApiError, match=f"{code}!") as raised:
            await read(server.url)
        assert (raised.value.status, raised.value.code, len(server.requests)) == (status, code, 2)


async def test_a_server_that_is_stopping_is_tried_again(read: Read) -> None:
    script = [healthy, lambda _: problem(503, "stopping"), lambda _: stream(log(2))]
    async with scripted_server(script) as server:
        assert await read(server.url) == [1, 2]


async def test_a_silent_connection_is_given_up_for_a_new_one(read: Read) -> None:
    async with scripted_server([healthy, lambda _: None, lambda _: stream(log(2))]) as server:
        assert await read(server.url, silence=0.2) == [1, 2]


async def test_reconnecting_ends_when_its_time_is_up(read: Read) -> None:
    async with scripted_server([healthy, lambda _: stream(b"")]) as server:
        with pytest.raises(ConnectionLost):
            await read(server.url, reconnect_for=0.3)


async def test_an_answer_that_is_no_stream_is_an_error(read: Read) -> None:
    async with scripted_server([healthy, lambda _: reply(200, {})]) as server:
        with pytest.raises(ClientError, match="expected an event stream"):
            await read(server.url)


async def test_without_a_server_the_first_attempt_fails_with_the_way_out() -> None:
    async with scripted_server([healthy]) as server:
        gone = server.url
    async with AsyncClient(gone) as client:
        with pytest.raises(ServerUnreachable, match=f"{gone}. Start one with `ostler serve`"):
            await anext(client.events.stream("ses_1"))


@pytest.mark.parametrize("stranger", [b"SSH-2.0-OpenSSH_9\r\n", b"", reply(502, "Bad gateway", "text/html")])
async def test_what_never_answered_as_a_server_is_given_up(stranger: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostler.client.events._STRANGER_SECONDS", 0.2)
    async with scripted_server([lambda _: stranger]) as server, AsyncClient(server.url) as client:
        with pytest.raises(ClientError):
            await anext(client.events.stream("ses_1"))


async def test_who_reads_is_told_that_the_stream_broke_and_that_it_goes_on() -> None:
    told: list[str] = []
    script = [lambda _: stream(event(1)), lambda _: problem(503, "stopping"), lambda _: stream(ended(2))]
    async with (
        scripted_server(script) as server,
        AsyncClient(server.url, on_break=lambda error: told.append(type(error).__name__)) as client,
    ):
        assert [each.sequence async for each in client.events.stream("ses_1")] == [1, 2]
    assert told == ["ConnectionLost", "OstlerApiError", "NoneType"]


async def test_an_event_from_the_future_is_kept() -> None:
    script = [lambda _: stream(event(1, "dream.began", depth=3) + ended(2))]
    async with scripted_server(script) as server, AsyncClient(server.url) as client:
        first = await anext(client.events.stream("ses_1"))
    assert isinstance(first, UnknownEvent)
    assert (first.type, first.data) == ("dream.began", {"depth": 3})


async def test_a_post_whose_connection_breaks_is_sent_once_more_with_the_same_key() -> None:
    script = [lambda _: b"", lambda _: reply(202, {"promptId": "p", "disposition": "started"})]
    async with scripted_server(script) as server, AsyncClient(server.url) as client:
        receipt = await client.sessions.send("ses_1", "hi")
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert (receipt.prompt_id, len(server.requests), len(keys)) == ("p", 2, 1)


async def test_a_post_that_breaks_twice_is_an_error() -> None:
    async with scripted_server([lambda _: b""]) as server, AsyncClient(server.url) as client:
        with pytest.raises(ConnectionLost):
            await client.sessions.send("ses_1", "hi")
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_would_change_the_address_is_refused(name: str) -> None:
    async with AsyncClient() as client:
        with pytest.raises(ClientError, match="cannot be an id"):
            await client.sessions.get(name)
