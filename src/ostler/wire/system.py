"""Health, readiness and version."""

from typing import Literal

from ostler.wire.struct import Answer, Wire


class Health(Wire, frozen=True, kw_only=True):
    """The server process answers."""

    status: Literal["ok"]


class Ready(Wire, frozen=True, kw_only=True):
    """The server can take work; checks name each part."""

    status: Literal["ready", "stopping", "unavailable"]
    checks: dict[str, str]


class IdentityProvider(Answer, frozen=True, kw_only=True):
    """An OpenID provider at which people get tokens for this server."""

    issuer: str
    audience: str
    client_id: str | None = None
    """The client with which `ostler login` asks there; without it people bring tokens of their own."""


class WayToSignIn(Answer, frozen=True, kw_only=True):
    """A provider at which people sign in in their browser."""

    name: str
    path: str
    """The page of this server that sends a browser there; `next` in its query is the page to show then."""


class Providers(Answer, frozen=True, kw_only=True):
    """How people sign in; empty if there are only tokens and API keys."""

    items: tuple[IdentityProvider, ...]
    """Where programs get tokens."""
    browser: tuple[WayToSignIn, ...] = ()
    """Where people sign in in their browser."""


class Version(Wire, frozen=True, kw_only=True):
    """Which server this is."""

    name: str
    version: str
    api: str
    schema: int
    python: str
