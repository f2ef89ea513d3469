"""What every store answers about templates."""

from ostler.server.store.protocol import Store
from ostler.server.store.templates import RevisionRow, TagRow
from tests.store.conftest import Opener


def _row(name: str, revision: str, project: str = "default") -> RevisionRow:
    at = f"2026-01-01T00:00:0{len(revision)}.000Z"
    return RevisionRow(project=project, name=name, revision=revision, about=b"{}", created_at=at)


async def test_revisions_stay_as_they_are_and_tags_move(opener: Opener) -> None:
    store = await opener()
    assert await store.templates.add(_row("a", "1"), b"\0one", ("latest",))
    assert await store.templates.add(_row("a", "22"), b"two", ("latest", "stable"))
    assert not await store.templates.add(_row("a", "1"), b"other", ("latest",))
    await store.templates.tag("default", "a", "stable", "1")
    await store.close()
    store = await opener()
    assert await store.templates.revisions("default", "a") == [_row("a", "22"), _row("a", "1")]
    assert await store.templates.content("default", "a", "1") == b"\0one"
    assert await store.templates.tags("default") == [TagRow("a", "latest", "1"), TagRow("a", "stable", "1")]
    await store.close()


async def test_templates_are_of_one_project(store: Store) -> None:
    await store.templates.add(_row("a", "1"), b"one", ("latest",))
    await store.templates.add(_row("a", "1", "other"), b"its own", ())
    assert await store.templates.content("other", "a", "1") == b"its own"
    assert not await store.templates.remove("third", "a")
    assert await store.templates.remove("default", "a")
    assert not await store.templates.remove("default", "a")
    assert await store.templates.revisions("default") == []
    assert await store.templates.tags("default") == []
    assert await store.templates.revisions("other") == [_row("a", "1", "other")]
