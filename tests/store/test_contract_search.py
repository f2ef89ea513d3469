"""What every store answers about what was said in sessions."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ostler.server.search.asking import wanted_of
from ostler.server.search.service import Search
from ostler.server.store.protocol import Store
from tests.store.conftest import Opener
from tests.support.log_writing import NOW, created, notice, said, started
from tests.support.patience import stretched


@asynccontextmanager
async def following(store: Store) -> AsyncIterator[Search]:
    search = Search(store)
    search.start()
    try:
        yield search
    finally:
        await search.close()


async def found(search: Search, text: str, **filters: Any) -> list[tuple[str, int]]:
    """The session and the first event of everything that fits, once all that was said is in the index."""
    async with asyncio.timeout(stretched(30)):
        while search.is_behind:
            await asyncio.sleep(0.02)
    hits, names = await search.find(wanted_of(text, project="default", **{"limit": 10, **filters}))
    assert {hit.session for hit in hits} <= names.keys()
    return [(hit.session, hit.first) for hit in hits]


async def test_what_was_said_is_found_by_words_beginnings_and_phrases_newest_first(store: Store) -> None:
    one, two = await created(store, "ses_a"), await created(store, "ses_b")
    await one.append(notice("a discount is no message"), said("itm_1", "Add a discount to the price list"))
    await two.append(said("itm_1", "The price, and src/shop/discount_rate.py too"))
    await two.append(started("itm_2"), notice("x"), said("itm_2", "Grüße an alle Größen"))
    async with following(store) as search:
        assert await found(search, "discount") == [("ses_b", 2), ("ses_a", 3)]
        assert await found(search, "DISC") == [("ses_b", 2), ("ses_a", 3)]
        assert await found(search, "discount rate") == [("ses_b", 2)]
        assert await found(search, "price discount list") == [("ses_a", 3)]
        assert await found(search, '"price list"') == [("ses_a", 3)]
        assert await found(search, '"list price"') == []
        assert await found(search, "shop/discount_r") == [("ses_b", 2)]
        assert await found(search, "größen") == [("ses_b", 3)]
        assert await found(search, "nothing") == []
        assert await found(search, "x\" OR NEAR( * -- ' ^") == []
        assert await found(search, "discount", limit=1) == [("ses_b", 2)]
        wanted = wanted_of("discount", project="default", limit=1)
        newest, _ = await search.find(wanted)
        assert await found(search, "discount", before=newest[0].id) == [("ses_a", 3)]


async def test_filters_stand_in_the_text_or_beside_it_and_projects_are_apart(store: Store) -> None:
    one = await created(store, "ses_a")
    two = await created(store, "ses_b", agent="codex")
    other = await created(store, "ses_c", project="other")
    for session in (one, two, other):
        await session.append(said("itm_1", "the same words"))
    async with following(store) as search:
        assert await found(search, "same") == [("ses_b", 2), ("ses_a", 2)]
        assert await found(search, "same agent:codex") == [("ses_b", 2)]
        assert await found(search, "same", agent="mock") == [("ses_a", 2)]
        assert await found(search, "session:ses_a same") == [("ses_a", 2)]
        assert await found(search, "same from:me") == []
        assert await found(search, "same", agent="mo\0ck", session="\0") == []
        assert await found(search, "same from:agent agent:codex") == [("ses_b", 2)]


async def test_what_is_said_later_is_found_and_what_is_deleted_is_not(store: Store) -> None:
    one, two = await created(store, "ses_a"), await created(store, "ses_b")
    await one.append(said("itm_1", "apple"))
    async with following(store) as search:
        assert await found(search, "apple") == [("ses_a", 2)]
        await one.append(said("itm_1", "pear"), said("itm_2", "plum " * 9000))  # completed once more, and a large one
        await two.append(said("itm_1", "apple and pear"))
        search.wake()
        assert await found(search, "apple") == [("ses_b", 2)]
        assert await found(search, "pear") == [("ses_b", 2), ("ses_a", 2)]
        assert await found(search, "plum") == [("ses_a", 4)]
        await store.delete_session("ses_a", 1, NOW)
        search.wake()
        assert await found(search, "pear") == [("ses_b", 2)]
        while await store.clear_some_events("ses_a"):
            pass
    assert await store.search.find(wanted_of("plum", project="default", limit=9)) == []  # nothing is left of it


async def test_an_index_goes_on_where_the_last_server_stopped(opener: Opener) -> None:
    store = await opener()
    one = await created(store, "ses_a")
    await one.append(said("itm_1", "before"))
    async with following(store) as search:
        assert await found(search, "before") == [("ses_a", 2)]
    await one.append(said("itm_2", "meanwhile"))
    await store.close()
    store = await opener()
    async with following(store) as search:
        assert await found(search, "meanwhile") == [("ses_a", 3)]
        assert await found(search, "before") == [("ses_a", 2)]
    await store.close()


async def test_two_that_follow_take_in_each_thing_once(store: Store) -> None:
    one = await created(store, "ses_a")
    for number in range(30):
        await one.append(said(f"itm_{number}", f"word number{number}"))
    async with following(store) as first, following(store) as second:
        assert len(await found(first, "word", limit=100)) == 30
        assert len(await found(second, "word", limit=100)) == 30


@pytest.mark.parametrize("damage", [b"no database at all" * 300, b""])
@pytest.mark.parametrize("opener", ["sqlite"], indirect=True)
async def test_an_index_that_is_damaged_is_made_anew(opener: Opener, tmp_path: Path, damage: bytes) -> None:
    store = await opener()
    one = await created(store, "ses_a")
    await one.append(said("itm_1", "precious"))
    async with following(store) as search:
        assert await found(search, "precious") == [("ses_a", 2)]
    await store.close()
    (tmp_path / "search.db").write_bytes(damage)
    store = await opener()
    async with following(store) as search:
        assert await found(search, "precious") == [("ses_a", 2)]
    await store.close()


@pytest.mark.parametrize("opener", ["sqlite"], indirect=True)
async def test_an_index_of_a_later_state_than_the_store_has_is_made_anew(opener: Opener, tmp_path: Path) -> None:
    store = await opener()
    await (await created(store, "ses_a")).append(said("itm_1", "early"))
    await store.close()
    backup = (tmp_path / "ostler.db").read_bytes()
    store = await opener()
    await (await created(store, "ses_b")).append(said("itm_1", "late"))
    async with following(store) as search:
        assert await found(search, "late") == [("ses_b", 2)]
    await store.close()
    with sqlite3.connect(tmp_path / "ostler.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (tmp_path / "ostler.db").write_bytes(backup)
    store = await opener()
    async with following(store) as search:
        assert await found(search, "late") == []
        assert await found(search, "early") == [("ses_a", 2)]
    await store.close()
