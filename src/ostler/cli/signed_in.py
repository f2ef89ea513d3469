"""Tokens that `ostler login` got, in a file of this user, and new ones when they are over."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from ostler.base.private import make_folder, replace_file
from ostler.base.tls.loopback import is_loopback

_EARLY_SECONDS = 60.0
_ASK_SECONDS = 20.0
_MOST_DIGITS = 9
_REFUSED = frozenset({400, 401})


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """What one server is shown, and how to get the next one."""

    token: str
    expires_at: float
    refresh_token: str | None
    token_endpoint: str
    client_id: str

    def is_good(self) -> bool:
        """Whether it will do for a command."""
        return time.time() < self.expires_at - _EARLY_SECONDS


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """As much of what a provider says of itself as is needed here."""

    issuer: str
    token_endpoint: str
    device_authorization_endpoint: str | None = None
    scopes_supported: tuple[str, ...] = ()


def token_for(address: str, ca_file: str | None) -> str | None:
    """The token for a server; None if nobody has signed in there."""
    if not _file().exists() or (known := _all().get(address.rstrip("/"))) is None:
        return None
    return known.token if known.is_good() else _renewed(address.rstrip("/"), ca_file)


def _renewed(address: str, ca_file: str | None) -> str | None:
    """One process asks for the next token: a provider that is shown an old refresh token ends all of them."""
    with _alone():
        known = _all().get(address)
        if known is None or known.is_good():
            return known.token if known is not None else None
        if known.refresh_token is None:
            raise _over(address)
        asked = {"grant_type": "refresh_token", "refresh_token": known.refresh_token, "client_id": known.client_id}
        status, answer = post(known.token_endpoint, asked, ca_file)
        if status in _REFUSED:
            raise _over(address, str(answer.get("error", status)))
        if status != 200:
            place = urlsplit(known.token_endpoint).netloc
            raise click.ClickException(f"The provider at {place} answered {status}. Try again in a moment.")
        fresh = signed_in(answer, known.token_endpoint, known.client_id, known.refresh_token)
        _write({**_all(), address: fresh})
        return fresh.token


def _over(address: str, reason: str = "it cannot be renewed") -> click.ClickException:
    return click.ClickException(
        f"You are signed in at {address} no more ({reason[:100]}). Sign in again: ostler --endpoint {address} login"
    )


def keep(address: str, new: SignedIn) -> None:
    """Remember it, in place of an earlier one."""
    with _alone():
        _write({**_all(), address.rstrip("/"): new})


def forget(address: str) -> bool:
    """Forget it; False if there was none."""
    with _alone():
        known = _all()
        was_there = known.pop(address.rstrip("/"), None) is not None
        if was_there:
            _write(known)
    return was_there


def signed_in(
    answer: Mapping[str, Any], token_endpoint: str, client_id: str, refresh_token: str | None = None
) -> SignedIn:
    """What a provider's answer with a token means."""
    token, seconds = answer.get("access_token"), answer.get("expires_in", 300)
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal():  # as some providers write it
        seconds = int(seconds[:_MOST_DIGITS])
    if not isinstance(token, str) or not isinstance(seconds, int | float):
        raise click.ClickException("The provider answered without a token.")
    newer = answer.get("refresh_token", refresh_token)
    return SignedIn(
        token=token,
        expires_at=time.time() + seconds,
        refresh_token=newer if isinstance(newer, str) else None,
        token_endpoint=token_endpoint,
        client_id=client_id,
    )


def provider_at(issuer: str, ca_file: str | None) -> Provider:
    """What a provider says of itself."""
    body = _exchanged("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration", None, ca_file)[1]
    try:
        found = msgspec.json.decode(body, type=Provider)
    except msgspec.DecodeError as error:
        raise click.ClickException(f"{issuer} is no OpenID provider that can be used: {error}.") from error
    if found.issuer != issuer:
        raise click.ClickException(f"The provider at {issuer} calls itself {found.issuer[:200]}.")
    return found


def post(url: str, form: Mapping[str, str], ca_file: str | None) -> tuple[int, dict[str, Any]]:
    """Send a form; the status and the object that was answered."""
    status, body = _exchanged("POST", url, form, ca_file)
    with suppress(msgspec.DecodeError):
        return status, msgspec.json.decode(body, type=dict[str, Any])
    return status, {}


def _exchanged(method: str, url: str, form: Mapping[str, str] | None, ca_file: str | None) -> tuple[int, bytes]:
    import httpx  # noqa: PLC0415 - it would slow every command

    from ostler.base.tls.contexts import File, trusting  # noqa: PLC0415 - with it comes ssl

    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise click.ClickException(f"The provider wants to be asked at {url[:200]}, which is not https.")
    authority = File.named("ca_file", ca_file)
    verify = trusting(authority) if authority is not None else True
    try:
        with httpx.Client(timeout=_ASK_SECONDS, verify=verify, follow_redirects=False) as client:
            answer = client.request(method, url, data=dict(form) if form is not None else None)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise click.ClickException(f"The provider at {parts.netloc} cannot be reached: {error}.") from error
    return answer.status_code, answer.content


def _file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path(os.environ.get("HOME") or "~").expanduser() / ".config")
    return Path(home) / "ostler" / "tokens.json"


def _all() -> dict[str, SignedIn]:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, SignedIn])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise click.ClickException(f"{_file()} cannot be read ({error}). Remove it and sign in again.") from error


def _write(known: dict[str, SignedIn]) -> None:
    replace_file(_file(), msgspec.json.encode(known))


@contextmanager
def _alone() -> Iterator[None]:
    """No other process of this user changes the file meanwhile."""
    make_folder(_file().parent)
    descriptor = os.open(_file().with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
