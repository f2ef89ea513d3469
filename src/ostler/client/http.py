"""What both clients need from httpx: its options, and its errors as ours."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

import httpx

from ostler.base.tls.contexts import File, trusting
from ostler.base.tls.faults import fault_of
from ostler.client.calls import headers
from ostler.client.errors import ConnectionLost, NoAnswer, NotTrusted, ServerUnreachable
from ostler.client.transport import CONNECT_SECONDS, LOCAL


class Options(TypedDict):
    """Arguments of httpx.Client and httpx.AsyncClient."""

    base_url: str
    headers: dict[str, str]
    timeout: httpx.Timeout
    limits: httpx.Limits
    verify: bool | ssl.SSLContext
    trust_env: bool


def options(
    base_url: str, token: str | None, timeout: float, ca_file: str | Path | None, project: str | None = None
) -> Options:
    """How to reach a server; `ca_file` has the authorities to trust instead of those that httpx comes with."""
    address = httpx.URL(base_url)
    authority = File.named("ca_file", ca_file)
    return Options(
        base_url=base_url.rstrip("/"),
        headers=headers(token, project),
        timeout=limit(timeout),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),  # a stream holds one for good
        verify=address.scheme == "https" and (authority is None or trusting(authority)),  # loading them takes long
        trust_env=address.host not in LOCAL,  # no proxy leads to this machine
    )


def limit(seconds: float) -> httpx.Timeout:
    """How long one request may take to answer, or one stream may stay silent."""
    return httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


@contextmanager
def translated(address: str, ca_file: str | Path | None = None) -> Iterator[None]:
    """Raise our own errors instead of httpx's."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if (fault := fault_of(error, address, ca_file)) is not None:
            raise NotTrusted(address, fault) from error
        raise ServerUnreachable(address) from error
    except httpx.TimeoutException as error:
        raise NoAnswer(address) from error
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise ConnectionLost(address, str(error)) from error
