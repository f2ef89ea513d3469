"""What can be seen of the database that servers share, for who looks also while no server runs."""

import asyncio

from ostler.wire.checking import DatabaseFacts

_SECONDS = 40.0


def look_at(url: str) -> DatabaseFacts:
    """Look at a database; raises OSError with the reason if it cannot be reached or takes too long."""
    from ostler.server.store.postgres.checking import look  # noqa: PLC0415  most machines do without its driver

    async def bounded() -> DatabaseFacts:
        async with asyncio.timeout(_SECONDS):
            return await look(url)

    try:
        return asyncio.run(bounded())
    except TimeoutError:
        raise OSError(f"it does not answer within {_SECONDS:g} seconds") from None
