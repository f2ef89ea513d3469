"""What every store answers about saved prompts."""

import asyncio

import pytest
from msgspec.structs import replace

from ostler.base.errors.prompts import PromptExists, PromptNotFound, TooManyPrompts
from ostler.server.store.protocol import Store
from ostler.server.store.records import PromptRow
from tests.store.conftest import Opener

NOW, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"


def _row(name: str, project: str = "default") -> PromptRow:
    return PromptRow(project=project, name=name, text=f"Do {name}. ✓", description=None, created_at=NOW, updated_at=NOW)


async def test_prompts_are_of_one_project_and_in_the_order_of_their_names(opener: Opener) -> None:
    store = await opener()
    for name in ("b-2", "b", "b.1", "a_b", "a-c"):
        await store.prompts.add(_row(name), 9)
    await store.prompts.add(_row("b", "other"), 9)
    await store.close()
    store = await opener()
    assert [each.name for each in await store.prompts.all("default")] == ["a-c", "a_b", "b", "b-2", "b.1"]
    assert await store.prompts.all("other") == [_row("b", "other")]
    assert await store.prompts.find("default", "b") == _row("b")
    assert await store.prompts.find("other", "a-c") is None
    await store.close()


async def test_a_project_has_no_more_than_the_most_however_many_are_saved_at_once(store: Store) -> None:
    done = await asyncio.gather(
        *(store.prompts.add(_row(f"p{number}"), 3) for number in range(6)), return_exceptions=True
    )
    assert [type(each) for each in done] == [type(None)] * 3 + [TooManyPrompts] * 3
    with pytest.raises(PromptExists, match="'p0' already"):
        await store.prompts.add(_row("p0"), 3)
    await store.prompts.add(_row("p0", "other"), 3)


async def test_what_is_changed_changes_and_the_rest_stays(store: Store) -> None:
    await store.prompts.add(_row("a"), 9)
    await store.prompts.add(_row("b"), 9)
    changed = await store.prompts.change("default", "a", {"name": "c", "description": "Tea", "updated_at": LATER})
    assert changed == replace(_row("a"), name="c", description="Tea", updated_at=LATER)
    assert [each.name for each in await store.prompts.all("default")] == ["b", "c"]
    assert (await store.prompts.change("default", "c", {"name": "c", "text": "x"})).text == "x"
    assert (await store.prompts.change("default", "c", {"text": "y"})).text == "y"
    with pytest.raises(PromptExists):
        await store.prompts.change("default", "c", {"name": "b"})
    with pytest.raises(PromptNotFound):
        await store.prompts.change("default", "a", {"text": "x"})
    with pytest.raises(PromptNotFound):
        await store.prompts.change("other", "b", {"text": "x"})


async def test_what_is_removed_is_gone_once(store: Store) -> None:
    await store.prompts.add(_row("a"), 9)
    assert not await store.prompts.remove("other", "a")
    assert await store.prompts.remove("default", "a")
    assert not await store.prompts.remove("default", "a")
