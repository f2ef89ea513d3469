"""What every store answers about the audit log."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from ostler.server.store.audit import AuditFilter, NewLine
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.wire.audit import BEGINNING, AuditHead, AuditLine, Chain
from tests.store.conftest import Opener
from tests.support.databases import shared_cluster

ACME = AuditFilter(tenant="acme")


def line(name: str, **changed: str | int) -> NewLine:
    known = NewLine(
        tenant="acme",
        id=name,
        at="2026-01-01T00:00:00.000Z",
        project="prj_1",
        actor="key:a",
        action="keys.create",
        outcome="done",
        status=201,
    )
    return replace(known, **changed)


def fault_in(lines: list[AuditLine], head: AuditHead) -> str | None:
    chain = Chain()
    return next((fault for each in lines if (fault := chain.fault(each))), None) or chain.fault_of_end(head)


async def test_lines_are_chained_in_each_tenant_and_stay(opener: Opener) -> None:
    store = await opener()
    assert await store.audit.head("acme") == AuditHead(number=0, hash=BEGINNING)
    await store.audit.append([line("1"), line("2", target="Grüße\0"), line("3", tenant="other")])
    await store.audit.append([line("4", count=3)])
    await store.close()
    store = await opener()
    lines = await store.audit.oldest(ACME, after=0, limit=10)
    assert [(each.number, each.id, each.count) for each in lines] == [(1, "1", 1), (2, "2", 1), (3, "4", 3)]
    head = await store.audit.head("acme")
    assert (head.number, fault_in(lines, head)) == (3, None)
    assert (await store.audit.head("other")).number == 1
    await store.close()


async def test_what_was_added_before_is_not_added_again(store: Store) -> None:
    some = [line("1"), line("2")]
    for _ in range(2):
        await store.audit.append(some)
    assert [each.id for each in await store.audit.oldest(ACME, after=0, limit=10)] == ["1", "2"]


async def test_lines_are_found_by_actor_action_time_and_number(store: Store) -> None:
    await store.audit.append(
        [
            line("1"),
            line("2", actor="key:b", at="2026-01-02T00:00:00.000Z"),
            line("3", action="sessions.stop", at="2026-01-03T00:00:00.000Z"),
        ]
    )

    async def newest(before: int | None = None, limit: int = 10, **wanted: str) -> list[int]:
        found = await store.audit.newest(replace(ACME, **wanted), before=before, limit=limit)
        return [each.number for each in found]

    assert await newest() == [3, 2, 1]
    assert await newest(limit=2) == [3, 2]
    assert await newest(before=2) == [1]
    assert await newest(actor="key:b") == [2]
    assert await newest(action="sessions.stop", actor="key:a") == [3]
    assert await newest(since="2026-01-02T00:00:00.000Z", until="2026-01-03T00:00:00.000Z") == [2]
    assert [each.number for each in await store.audit.oldest(ACME, after=1, limit=1)] == [2]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda lines: [*lines[:1], replace(lines[1], actor="key:b"), *lines[2:]], "Line 2 was changed"),
        (lambda lines: [lines[0], *lines[2:]], "Line 2 is not there"),
        (lambda lines: [lines[0], replace(lines[2], number=2), replace(lines[1], number=3)], "Line 2 does not follow"),
        (lambda lines: lines[:-1], "The lines after line 2 are not there"),
        (lambda lines: lines[1:], "Line 1 is not there"),
    ],
    ids=["changed", "removed", "moved", "cut off", "first one removed"],
)
async def test_what_was_done_to_lines_is_found(store: Store, spoil: object, told: str) -> None:
    await store.audit.append([line(str(number)) for number in range(3)])
    lines, head = await store.audit.oldest(ACME, after=0, limit=10), await store.audit.head("acme")
    assert callable(spoil)
    assert (fault_in(spoil(lines), head) or "").startswith(told)


async def test_several_servers_of_one_database_write_one_chain(tmp_path: Path) -> None:
    url = shared_cluster().new_database()
    for name in "ab":
        (tmp_path / name).mkdir()
    stores = [await PostgresStore.open(url, tmp_path / name, boot="now") for name in "ab"]
    await asyncio.gather(
        *(store.audit.append([line(f"{place} {number}")]) for number in range(20) for place, store in enumerate(stores))
    )
    lines, head = await stores[0].audit.oldest(ACME, after=0, limit=100), await stores[1].audit.head("acme")
    assert (head.number, fault_in(lines, head)) == (40, None)
    for store in stores:
        await store.close()


async def test_old_lines_are_removed_from_the_beginning_and_the_rest_still_verifies(store: Store) -> None:
    old, new = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"
    await store.audit.append([line(str(number)) for number in range(4)] + [line("new", at=new), line("late", at=old)])
    await store.audit.append([line("other", tenant="other")])
    assert await store.audit.tenants_with_lines_before(new) == ["acme", "other"]
    told = line("told", at=new, actor="server", action="audit.removed")
    assert await store.audit.remove_before(new, told, most=3) == 3
    assert await store.audit.remove_before(new, told, most=3) == 4
    assert await store.audit.remove_before(new, told, most=3) == 0
    lines, head = await store.audit.oldest(ACME, after=0, limit=10), await store.audit.head("acme")
    assert [(each.number, each.action, each.target) for each in lines[:3]] == [
        (5, "keys.create", ""),
        (6, "keys.create", ""),
        (7, "audit.removed", "1-3"),
    ]
    chain = Chain(await store.audit.removed("acme"))
    assert [fault for each in lines if (fault := chain.fault(each))] == []
    assert chain.fault_of_end(head) is None
    assert fault_in(lines, head) == "Line 1 is not there: line 5 follows line 0."
    assert await store.audit.remove_before(new, replace(told, tenant="other"), most=3) == 0, "its newest line stays"
