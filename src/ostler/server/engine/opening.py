"""Which engine a server has."""

from collections.abc import Callable

from ostler.base.errors import SettingsError
from ostler.base.settings import Settings
from ostler.server.engine.embedded import EmbeddedEngine
from ostler.server.engine.protocol import Engine
from ostler.server.store.protocol import Jobs


def engine_of(settings: Settings) -> Callable[[Jobs, str], Engine]:
    """What makes the engine of a store for a server; raises at once if the settings cannot be right."""
    if settings.engine is None:
        return EmbeddedEngine
    try:
        from ostler.server.engine.temporal.connecting import Access  # noqa: PLC0415  most servers do without its driver
        from ostler.server.engine.temporal.engine import TemporalEngine  # noqa: PLC0415  the same
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "temporalio":
            raise
        reason = "needs the package temporalio. Install it with: pip install 'ostler[temporal]'"
        raise SettingsError(name="engine", value=settings.engine, reason=reason) from error
    access = Access.reading(settings)
    return lambda jobs, owner: TemporalEngine(jobs, owner, access, settings.deployment)
