"""Whether the engine of the settings can be used, for who looks while no server runs."""

import asyncio

from ostler.base.settings import Settings
from ostler.server.engine.temporal.connecting import Access, Unreachable, connected

_SECONDS = 20.0


def problem(settings: Settings) -> str | None:
    """Why Temporal cannot be used now, and what to do; raises SettingsError if the settings cannot be right."""
    return asyncio.run(_problem(Access.reading(settings)))


async def _problem(access: Access) -> str | None:
    try:
        async with asyncio.timeout(_SECONDS):
            await connected(access, "ostler-doctor")
    except Unreachable as error:
        return str(error)
    except TimeoutError:
        return f"{access.address.host} does not answer within {_SECONDS:g} seconds."
    return None
