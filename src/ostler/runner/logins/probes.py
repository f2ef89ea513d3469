"""What tells whether a login holds: the agent's own word, or the service that a key is for."""

import asyncio
import http.client
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ostler.agents.adapter import Installation, KeyCheck, Login
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import OWN, Starter
from ostler.runner.starting.ways import asked
from ostler.wire.agents import LoginState

_STATUS_SECONDS = 30.0
_CHECK_SECONDS = 10.0
_REFUSED = (401, 403)


async def status_of(
    starter: Starter,
    login: Login,
    installation: Installation,
    *,
    links: Mapping[str, str | None],
    env: Mapping[str, str],
) -> tuple[LoginState, str]:
    """Ask the agent in a home like that of a session; what it says, and how that is known."""
    command = " ".join((Path(installation.path).name, *login.status))
    with tempfile.TemporaryDirectory(prefix="ostler-login-", ignore_cleanup_errors=True) as home:
        start = Start(
            grant=OWN,
            argv=(*installation.command, *login.status),
            env={**login.env, **env},
            home=home,
            cwd=home,
            links=dict(links),
        )
        code, output = await starter.start(start, asked(_STATUS_SECONDS))
    if code is None:
        return "unknown", f"`{command}` gave no answer within {_STATUS_SECONDS:.0f} seconds."
    if code != 0:
        return "needs_login", f"`{command}` says that it is not logged in."
    until = _expiry(output, login.expires)
    if until is not None and until <= datetime.now(UTC):
        return "expired", f"`{command}` says that the login ended at {until:%Y-%m-%d %H:%M} UTC."
    return "ready", f"`{command}` says that it is logged in."


def _expiry(output: bytes, name: str | None) -> datetime | None:
    """A time in what a command printed: ISO, or milliseconds since 1970."""
    if name is None:
        return None
    try:
        value = msgspec.json.decode(output, type=dict[str, object]).get(name)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000, UTC)
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (msgspec.DecodeError, ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found is not None else None


async def key_verdict(check: KeyCheck | None, key: str) -> tuple[bool | None, str]:
    """Whether the service takes a key, None if that cannot be told, and who said so or why not."""
    if check is None:
        return None, "its service has nothing to ask"
    return await asyncio.to_thread(_asked, check, key)


def _asked(check: KeyCheck, key: str) -> tuple[bool | None, str]:
    host = check.url.split("/")[2]
    try:
        headers = {check.header: f"{check.prefix}{key}", "user-agent": "ostler", **check.also}
        request = urllib.request.Request(check.url, headers=headers)  # noqa: S310 - an address of an adapter
        with urllib.request.urlopen(request, timeout=_CHECK_SECONDS):  # noqa: S310 - the same
            return True, host
    except urllib.error.HTTPError as error:
        error.close()
        return (False, host) if error.code in _REFUSED else (None, f"{host} answered {error.code}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return None, f"{host} could not be asked: {getattr(error, 'reason', None) or type(error).__name__}"
