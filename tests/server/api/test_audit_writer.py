"""The writer of the audit log, beside lines that cannot be written and at its end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ostler.base.clock import SystemClock
from ostler.server.audit.log import AuditLog
from ostler.server.store.audit import AuditFilter, NewLine
from ostler.server.store.sqlite.store import SqliteStore

ACME = AuditFilter(tenant="acme")
OF: dict[str, Any] = {"tenant": "acme", "project": "p", "outcome": "done", "status": 200}


async def opened(path: Path) -> tuple[SqliteStore, AuditLog]:
    store = await SqliteStore.open(path / "ostler.db", sync="normal", boot="now")
    return store, AuditLog(store.audit, SystemClock())


async def actions(store: SqliteStore) -> list[str]:
    return [each.action for each in await store.audit.oldest(ACME, after=0, limit=2000)]


def refused(audit: AuditLog, actor: str, tenant: str) -> NewLine:
    return audit.line(tenant=tenant, project="p", actor=actor, action="x", outcome="refused", status=403)


async def test_what_waits_while_one_is_written_is_stored_when_the_server_ends(tmp_path: Path) -> None:
    store, audit = await opened(tmp_path)
    first = asyncio.create_task(audit.written(audit.line(actor="a", action="first", **OF)))
    await asyncio.sleep(0)  # the line is there
    await asyncio.sleep(0)  # and is being written
    second = asyncio.create_task(audit.written(audit.line(actor="a", action="second", **OF)))
    await asyncio.sleep(0)
    await audit.close()
    async with asyncio.timeout(5):
        await asyncio.gather(first, second)
    assert await actions(store) == ["first", "second"]
    await store.close()


@pytest.mark.lane("server")
async def test_a_line_that_can_never_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    store, audit = await opened(tmp_path)
    spoilt = audit.line(actor="a", action="sur\ud800x", **OF)
    async with asyncio.timeout(60):
        await asyncio.gather(*(audit.written(each) for each in (spoilt, audit.line(actor="a", action="good", **OF))))
        await audit.written(audit.line(actor="a", action="later", **OF))
    await audit.close()
    found = await actions(store)
    assert (sorted(found), found.index("good") < found.index("later")) == (["audit.lost", "good", "later"], True)
    await store.close()


async def test_refusals_are_counted_in_the_tenant_that_they_are_of(tmp_path: Path) -> None:
    store, audit = await opened(tmp_path)
    for tenant in ("acme", "other", "acme", "other", "other"):
        audit.refused(refused(audit, "oidc:anna", tenant))
    await audit.close()
    lines = await store.audit.oldest(ACME, after=0, limit=10)
    assert [(each.actor, each.count) for each in lines] == [("oidc:anna", 1), ("oidc:anna", 1)]
    await store.close()


async def test_refusals_of_too_many_kinds_are_counted_for_several(tmp_path: Path) -> None:
    store, audit = await opened(tmp_path)
    for number in range(1003):
        audit.refused(refused(audit, f"key:{number}", "acme"))
    await audit.close()
    lines = await store.audit.oldest(ACME, after=1000, limit=10)
    assert [(each.actor, each.count) for each in lines] == [("several", 1), ("several", 2)]
    await store.close()
