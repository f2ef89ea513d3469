"""Which store a server has, and with whom it shares it."""

import ipaddress
from contextlib import suppress

from ostler import __version__
from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.server.store.peers import Member, Peers
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore


async def open_store(settings: Settings, boot: str) -> Store:
    """A file in the state folder, or the database of the settings; `boot` is which start of the machine this is."""
    if settings.database is None:
        return await SqliteStore.open(settings.state_dir / "ostler.db", sync=settings.database_sync, boot=boot)
    from ostler.server.store.postgres.store import PostgresStore  # noqa: PLC0415  most servers do without its driver

    return await PostgresStore.open(settings.database, settings.state_dir, boot=boot)


async def join_servers(store: Store, settings: Settings, server: str, port: int) -> Peers | None:
    """Be one of the servers of a store; None if it never has more than one."""
    if settings.database is None:
        return None
    timeout, for_runners = settings.server_timeout_seconds, settings.advertise_to_runners
    files = settings.object_store.partition("?")[0].rstrip("/") if settings.object_store is not None else None
    member = Member(server, advertised(settings, port), __version__, timeout, for_runners, files)
    return await store.owners.join(member)


def advertised(settings: Settings, port: int) -> str:
    """Where others reach this server: what it listens on, unless that names no address."""
    if settings.advertise is not None:
        return settings.advertise.rstrip("/")
    with suppress(ValueError):
        if ipaddress.ip_address(settings.host).is_unspecified:
            reason = "is needed with --database where --host names no address: say where other servers reach this one."
            raise SettingsError(
                name="advertise", value="", reason=f"{reason} Example: --advertise http://10.0.0.1:{port}"
            )
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'http' if settings.tls_cert is None else 'https'}://{host}:{port}"
