"""How a runner becomes known to its servers: it makes a key, and registers it once with a token."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec

from ostler.base import private
from ostler.base.errors import SettingsError
from ostler.base.errors.runners import RunnerRefused
from ostler.base.tls.contexts import Trust
from ostler.base.tls.loopback import is_loopback
from ostler.link.keys import hashed
from ostler.link.refusals import lost, refusal
from ostler.runner.identity import REGISTRATION
from ostler.wire.runners import Registered, RegisterRunner

_SECONDS = 15.0
_HINT = "Make a token with `ostler runners token` and give it with --token-file, or in OSTLER_RUNNER_TOKEN."


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner remembers of itself, for its own user only."""

    key: str
    id: str | None = None
    """What its servers call it; None until it has heard that."""
    servers: tuple[str, ...] = ()
    """What the server that it was linked to last named."""


def read_registration(state_dir: Path) -> Registration:
    """What is remembered; a runner that starts here for the first time gets a key, which nobody knows yet."""
    file = state_dir / REGISTRATION
    try:
        return msgspec.json.decode(file.read_bytes(), type=Registration)
    except FileNotFoundError:
        _refuse_files_of_another(state_dir)
        made = Registration(key=f"rnk_{secrets.token_urlsafe(32)}")
        write_registration(state_dir, made)
        return made
    except (OSError, msgspec.MsgspecError) as error:
        reason = f"cannot be read ({error}). Remove it and register the runner anew."
        raise SettingsError(name="state_dir", value=file, reason=reason) from error


def _refuse_files_of_another(state_dir: Path) -> None:
    """A new runner has no sessions, so the server would have it remove whatever an earlier one left here."""
    sessions = state_dir / "sessions"
    if sessions.is_dir() and (count := sum(1 for _ in sessions.iterdir())):
        reason = (
            f"has files of {count} sessions of an earlier runner, which a new one would remove: "
            f"{REGISTRATION} is missing. Bring it back, choose another --state-dir, or remove {sessions} yourself."
        )
        raise SettingsError(name="state_dir", value=state_dir, reason=reason)


def write_registration(state_dir: Path, registration: Registration) -> None:
    """Remember it, whole or not at all."""
    private.replace_file(state_dir / REGISTRATION, msgspec.json.encode(registration))


async def register(server: str, key: str, token: str | None, name: str, trust: Trust | None) -> Registered:
    """Have a server know our key; raises RunnerRefused if it will not, LinkLost if it should be asked again."""
    if token is None:
        raise RunnerRefused(reason=f"This runner is not registered yet. {_HINT}")
    body = msgspec.json.encode(RegisterRunner(key_hash=hashed(key), name=name))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        async with httpx.AsyncClient(verify=trust.context if trust is not None else True, timeout=_SECONDS) as client:
            response = await client.post(f"{server.rstrip('/')}/api/v1/runners/register", content=body, headers=headers)
    except httpx.HTTPError as error:
        broke = isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
        raise lost(server, error, trust, broke=broke) from error
    if response.is_success:
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(response.content, type=Registered)
    raise refusal(server, response.status_code, response.content)


def checked_servers(servers: tuple[str, ...], *, insecure: bool) -> Iterator[str]:
    """Addresses of servers as they are dialled; without TLS only this machine, unless somebody accepts the risk."""
    if not servers:
        raise SettingsError(name="server", value="", reason="name a server with --server https://HOST.")
    for server in servers:
        parts = urlsplit(server)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query:
            raise SettingsError(name="server", value=server, reason="must be an address such as https://HOST:PORT.")
        if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
            reason = "everybody on the way could read the runner's key. Use https, or accept the risk with --insecure."
            raise SettingsError(name="server", value=server, reason=reason)
        yield server.rstrip("/")
