"""Clients behind a proxy are told apart by what it says, if the operator trusts it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.base.addresses import networks_of
from ostler.base.errors import SettingsError
from ostler.base.settings import load_settings
from ostler.server.api.edge.forwarded import TrustedProxies
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server

TOKEN = "right"
TRUSTED = ("127.0.0.1", "10.1.0.0/16", "fd00::/8")


def from_(*way: str, token: str = TOKEN) -> httpx.Headers:
    headers = [("authorization", f"Bearer {token}"), *(("x-forwarded-for", each) for each in way)]
    return httpx.Headers(headers)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that trusts this machine and a network of proxies."""
    more = ("--token", TOKEN, "--max-wrong-tokens", "3", "--max-streams-per-client", "2")
    trusted = ("--trusted-proxy", "127.0.0.1", "--trusted-proxy", "10.1.0.0/16")
    with running_server(tmp_path_factory.mktemp("proxied") / "state", *more, *trusted) as running:
        yield running


@contextmanager
def stream(server: RunningServer, *way: str) -> Iterator[httpx.Response]:
    with (
        httpx.Client(timeout=60) as client,
        client.stream("GET", f"{server.url}/api/v1/events?stream=1", headers=from_(*way)) as answer,
    ):
        yield answer


def test_clients_behind_a_trusted_proxy_have_limits_of_their_own(proxied: RunningServer) -> None:
    with ExitStack() as stack:
        for way in (("198.51.100.7",), ("1.1.1.1, 198.51.100.7, 10.1.2.3",), ("198.51.100.8",), ("198.51.100.8",)):
            assert stack.enter_context(stream(proxied, *way)).status_code == 200
        refused = stack.enter_context(stream(proxied, "198.51.100.7"))
        assert refused.status_code == 429
        assert "The client 198.51.100.7 has 2" in json.loads(refused.read())["detail"]


def test_wrong_tokens_of_one_client_do_not_lock_its_neighbours_out(proxied: RunningServer) -> None:
    with httpx.Client(base_url=f"{proxied.url}/api/v1", timeout=60) as client:
        for _ in range(3):
            client.get("/version", headers=from_("203.0.113.1", token="wrong"))
        locked_out = client.get("/version", headers=from_("203.0.113.1", token="wrong"))
        assert_problem(locked_out, "too_many_wrong_tokens")
        neighbour = client.get("/version", headers=from_("203.0.113.2", token="wrong"))
        assert_problem(neighbour, "token_invalid")


def test_without_the_setting_the_header_is_ignored(tmp_path: Path) -> None:
    more = ("--token", TOKEN, "--max-streams-per-client", "1")
    with (
        running_server(tmp_path / "state", *more) as server,
        stream(server, "198.51.100.7") as first,
        stream(server, "198.51.100.8") as other,
    ):
        assert (first.status_code, other.status_code) == (200, 429)
        assert "The client 127.0.0.1 has 1" in json.loads(other.read())["detail"]


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("198.51.100.9", ["198.51.100.7"], "198.51.100.9"),
        ("127.0.0.1", ["6.6.6.6, 198.51.100.7, 10.1.0.1"], "198.51.100.7"),
        ("127.0.0.1", ["6.6.6.6", "198.51.100.7", "10.1.0.1"], "198.51.100.7"),
        ("127.0.0.1", ["10.1.0.9, 10.1.0.1"], "10.1.0.9"),
        ("127.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("127.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:127.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["6.6.6.6, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["6.6.6.6, unknown, 10.1.0.1"], "10.1.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(peer: str, headers: list[str], client: str) -> None:
    given = [(b"x-forwarded-for", each.encode()) for each in headers]
    scope: dict[str, Any] = {"client": (peer, 4711), "headers": [(b"host", b"a"), *given]}
    TrustedProxies(networks_of("trusted_proxies", TRUSTED)).name_client(scope)
    assert scope["client"][0] == client


def test_a_proxy_that_is_no_address_is_refused_at_the_start(tmp_path: Path) -> None:
    flags = {"state_dir": tmp_path, "trusted_proxies": ("nginx.local",)}
    with pytest.raises(SettingsError, match=r"nginx\.local.*name an address such as 10\.0\.0\.5"):
        load_settings(flags=flags, environ={})
