"""What can be seen of the database that servers share; nobody sends it anywhere."""

import msgspec


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as its row in the database says."""

    id: str
    address: str
    version: str
    is_here: bool
    """False if it was stopped in order."""
    beats: bool
    """Whether it showed a sign of life while we looked."""
    files: str | None = None
    """Where it keeps files for all servers; empty if they lie with itself, None if it did not say."""


class DatabaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A database that servers share."""

    shown: str
    """Its address without the password."""
    version: str
    schema: int
    """0 if no server has used it yet."""
    known_schema: int
    latency: float
    """Seconds of the shortest round trip."""
    clock_ahead: float
    """Seconds that its clock is ahead of ours."""
    most_connections: int
    connections: int
    is_standby: bool
    is_pooled: bool
    """Whether a pooler is between."""
    says_pooled: bool
    """Whether the address says so."""
    hears: bool | None
    """Whether notifications arrive; None where nobody listens."""
    secret: str | None
    """What servers know each other by."""
    servers: tuple[ServerFacts, ...]
