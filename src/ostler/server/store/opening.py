"""Which store a server has."""

from ostler.base.settings import Settings
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore


async def open_store(settings: Settings, boot: str) -> Store:
    """A file in the state folder, or the database of the settings; `boot` is which start of the machine this is."""
    if settings.database is None:
        return await SqliteStore.open(settings.state_dir / "ostler.db", sync=settings.database_sync, boot=boot)
    from ostler.server.store.postgres.store import PostgresStore  # noqa: PLC0415  most servers do without its driver

    return await PostgresStore.open(settings.database, settings.state_dir, boot=boot)
