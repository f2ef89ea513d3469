"""Health, readiness and version."""

from typing import Literal

from ostler.wire.struct import Wire


class Health(Wire, frozen=True, kw_only=True):
    """The server process answers."""

    status: Literal["ok"]


class Ready(Wire, frozen=True, kw_only=True):
    """The server can take work; checks name each part."""

    status: Literal["ready", "stopping", "unavailable"]
    checks: dict[str, str]


class Version(Wire, frozen=True, kw_only=True):
    """Which server this is."""

    name: str
    version: str
    api: str
    schema: int
    python: str
