"""A store moved from one database to another, and compared."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from ostler.server.store.errors import NotCopied
from ostler.server.store.postgres.tables import PostgresTables
from ostler.server.store.sqlite.tables import SqliteTables
from ostler.server.store.tables import TABLES, Table, Tables, digest

_ADDRESSES = ("postgresql://", "postgres://")


async def copy_store(source: str, target: str, report: Callable[[str, int], None]) -> None:
    """Copy everything; each is a state folder or the address of a PostgreSQL database.

    The target has to be empty, and holds nothing unless all of it was copied and is the same.
    """
    if source == target:
        raise NotCopied(reason="source and target are the same.")
    old = await _opened(source, must_exist=True)
    try:
        new = await _opened(target, must_exist=False)
        try:
            await _copy(old, new, report)
        finally:
            await new.close()
    finally:
        await old.close()


async def _opened(place: str, *, must_exist: bool) -> Tables:
    if place.startswith(_ADDRESSES):
        return await PostgresTables.open(place)
    if not place or "://" in place:
        reason = "name a state folder, or an address that begins with postgresql://."
        raise NotCopied(reason=reason)
    return SqliteTables.open(Path(place), must_exist=must_exist)


async def _copy(old: Tables, new: Tables, report: Callable[[str, int], None]) -> None:
    for table in TABLES:
        if count := await new.count(table):
            raise NotCopied(reason=f"the target has {count} rows of {table.name} already. Choose an empty one.")
    for table in TABLES:
        report(table.name, await _copy_table(old, new, table))
    await new.finish(await old.last_epoch())


async def _copy_table(old: Tables, new: Tables, table: Table) -> int:
    count = 0
    async for rows in old.rows(table):
        await new.add(table, rows)
        await asyncio.sleep(0)  # where Ctrl-C ends it
        count += len(rows)
    if await digest(old, table) != await digest(new, table):
        raise NotCopied(reason=f"the {table.name} in the target are not the same. Please report this.")
    return count
