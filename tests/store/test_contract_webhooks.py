"""What every store answers about webhooks and their calls."""

import asyncio

from msgspec.structs import replace

from ostler.server.store.protocol import Store
from ostler.server.store.webhooks import PAUSED, CallRow, WebhookRow
from tests.store.conftest import Opener

AT = "2026-01-01T00:00:00.000Z"


def _webhook(name: str, project: str = "default") -> WebhookRow:
    return WebhookRow(id=f"whk_{name}", project=project, body=b"{}", position=10, created_at=AT)


def _call(number: int, chain: str | None = "ses_1", webhook: str = "whk_a") -> CallRow:
    return CallRow(
        id=f"msg_{number}",
        webhook_id=webhook,
        number=number,
        chain=chain,
        session=chain,
        type="turn.ended",
        at=float(number),
        body=b"{}",
    )


async def test_whoever_is_first_moves_a_webhook_on_and_its_calls_are_there_once(opener: Opener) -> None:
    store = await opener()
    row = _webhook("a")
    assert await store.webhooks.add(row, 1)
    assert not await store.webhooks.add(_webhook("b"), 1)
    moved = await asyncio.gather(*(store.webhooks.advance(row, 12, [_call(11), _call(12)], 0.0) for _ in range(4)))
    assert sorted(moved) == [False, False, False, True]
    await store.close()
    store = await opener()
    assert await store.webhooks.active() == [replace(row, position=12)]
    assert [each.id for each in await store.webhooks.calls("whk_a", 9)] == ["msg_12", "msg_11"]
    await store.close()


async def test_one_server_makes_the_first_call_of_a_session_and_another_one_after_its_time(store: Store) -> None:
    assert await store.webhooks.add(_webhook("a"), 9)
    calls = [_call(1), _call(2), _call(3, "ses_2"), _call(4, None), _call(5, None)]
    await store.webhooks.advance(_webhook("a"), 20, calls, 0.0)
    taken = await asyncio.gather(*(store.webhooks.claim("whk_a", 100.0, 130.0, 9) for _ in range(3)))
    assert sorted(each.number for found in taken for each in found) == [1, 3, 4, 5]
    assert await store.webhooks.next_due("whk_a") == 130.0
    assert [each.tries for each in await store.webhooks.claim("whk_a", 140.0, 170.0, 1)] == [2]
    late = replace(_call(1), tries=1, state="delivered")
    await store.webhooks.settle(late, 141.0, None)
    assert (await store.webhooks.find_call("whk_a", "msg_1")) == replace(_call(1), tries=2, until=170.0)
    await store.webhooks.settle(replace(late, tries=2), 142.0, None)
    assert [each.number for each in await store.webhooks.claim("whk_a", 143.0, 173.0, 1)] == [2]
    await store.webhooks.let_go()
    assert await store.webhooks.waiting("whk_a") == 4
    assert await store.webhooks.next_due("whk_a") == 0.0


async def test_a_webhook_remembers_since_when_it_fails_and_what_stopped_it(store: Store) -> None:
    assert await store.webhooks.add(_webhook("a"), 9)
    await store.webhooks.advance(_webhook("a"), 20, [_call(1)], 0.0)
    (call,) = await store.webhooks.claim("whk_a", 100.0, 130.0, 9)
    await store.webhooks.settle(replace(call, due=105.0, status=500, reason="no"), 101.0, None)
    assert [each.failing_since for each in await store.webhooks.active()] == [101.0]
    assert await store.webhooks.next_due("whk_a") == 105.0
    (call,) = await store.webhooks.claim("whk_a", 106.0, 136.0, 9)
    await store.webhooks.settle(replace(call, state="failed", status=410, reason="gone"), 107.0, "gone")
    assert await store.webhooks.active() == []
    stopped = await store.webhooks.find("default", "whk_a")
    assert stopped is not None
    assert (stopped.stopped, stopped.failing_since) == ("gone", 101.0)
    assert not await store.webhooks.advance(stopped, 30, [_call(25)], 0.0), "it wants to hear nothing"
    await store.webhooks.again(call)
    assert await store.webhooks.change(replace(stopped, stopped=None, failing_since=None, position=40))
    assert [each.position for each in await store.webhooks.active()] == [40]
    (call,) = await store.webhooks.claim("whk_a", 108.0, 138.0, 9)
    await store.webhooks.settle(replace(call, state="delivered"), 109.0, None)
    assert (await store.webhooks.active())[0].failing_since is None


async def test_webhooks_are_of_one_project_and_go_with_their_calls(store: Store) -> None:
    for row in (_webhook("b", "other"), _webhook("a")):
        assert await store.webhooks.add(row, 9)
    await store.webhooks.call(_call(1, None))
    assert [row.id for row in await store.webhooks.all("default")] == ["whk_a"]
    assert await store.webhooks.find("other", "whk_a") is None
    assert not await store.webhooks.change(replace(_webhook("a"), project="other", stopped=PAUSED))
    assert await store.webhooks.find_call("whk_b", "msg_1") is None
    assert not await store.webhooks.remove("other", "whk_a")
    assert await store.webhooks.remove("default", "whk_a")
    assert await store.webhooks.calls("whk_a", 9) == []


async def test_a_call_that_was_delivered_and_is_made_again_holds_back_no_other_one(store: Store) -> None:
    assert await store.webhooks.add(_webhook("a"), 9)
    await store.webhooks.advance(_webhook("a"), 20, [_call(1), _call(2)], 0.0)
    (call,) = await store.webhooks.claim("whk_a", 100.0, 130.0, 9)
    await store.webhooks.settle(replace(call, state="delivered"), 101.0, None)
    await store.webhooks.again(call)
    assert [each.number for each in await store.webhooks.claim("whk_a", 102.0, 132.0, 9)] == [1, 2]


async def test_a_change_of_the_body_leaves_alone_what_calls_have_shown_since(store: Store) -> None:
    row = _webhook("a")
    assert await store.webhooks.add(row, 9)
    await store.webhooks.advance(row, 20, [_call(1)], 0.0)
    (call,) = await store.webhooks.claim("whk_a", 100.0, 130.0, 9)
    await store.webhooks.settle(replace(call, due=500.0, status=410, reason="gone"), 101.0, "gone")
    assert await store.webhooks.change(replace(row, body=b"{1}"), with_state=False)
    changed = await store.webhooks.find("default", "whk_a")
    assert changed is not None
    assert (changed.body, changed.stopped, changed.failing_since) == (b"{1}", "gone", 101.0)
    assert await store.webhooks.change(changed, with_state=False, at_once=True)
    assert await store.webhooks.next_due("whk_a") == 0.0
    assert await store.webhooks.find("default", "whk_a") == replace(changed, failing_since=None)


async def test_a_call_about_nothing_does_not_make_a_webhook_failing(store: Store) -> None:
    assert await store.webhooks.add(_webhook("a"), 9)
    await store.webhooks.advance(_webhook("a"), 20, [_call(1)], 0.0)
    (call,) = await store.webhooks.claim("whk_a", 100.0, 130.0, 9)
    await store.webhooks.settle(replace(call, state="failed", reason="its session was deleted"), None, None)
    assert [each.failing_since for each in await store.webhooks.active()] == [None]
    assert await store.webhooks.waiting("whk_a") == 0


async def test_the_oldest_calls_that_are_over_go_when_there_are_too_many_or_too_large_ones(store: Store) -> None:
    body = b"x" * 1000
    assert await store.webhooks.add(_webhook("a"), 1)
    await store.webhooks.advance(_webhook("a"), 20, [replace(_call(n, None), body=body) for n in range(1, 11)], 0.0)
    await store.webhooks.call(_call(99, None, "whk_b"))
    for call in await store.webhooks.claim("whk_a", 50.0, 60.0, 10):
        if call.number != 2:
            await store.webhooks.settle(replace(call, state="delivered"), 50.0, None)

    async def left() -> list[int]:
        return [call.number for call in reversed(await store.webhooks.calls("whk_a", 99))]

    await store.webhooks.trim("whk_a", most=9, most_bytes=10**9)
    assert await left() == list(range(1, 11))
    await store.webhooks.trim("whk_a", most=4, most_bytes=10**9)
    assert await left() == [2, 7, 8, 9, 10], "the one that waits stays"
    await store.webhooks.trim("whk_a", most=4, most_bytes=2 * len(body))
    assert await left() == [2, 9, 10]
    assert [call.number for call in await store.webhooks.calls("whk_b", 9)] == [99]
