"""Which addresses may be called, in every spelling; and that what was checked is what is called."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from ostler.base.addresses import AddressRules, Unresolved
from ostler.base.dialling import TooMuch, checked_client
from ostler.base.errors import AddressRefused, SettingsError

NOBODY = AddressRules()
FORBIDDEN = [
    *("127.0.0.1", "127.8.8.8", "127.1", "0177.0.0.1", "0x7f.0.0.1", "2130706433", "0x7f000001", "017700000001"),
    *("localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "0", "0.0.0.0", "00000000", "127.0.0.1.0x1"),
    *("10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "198.18.0.1", "192.0.2.1"),
    *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:8.8.8.8]", "[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[2002:7f00:1::]", "[2001:0:1::1]", "[fe80::1]", "[fc00::1]", "[fd00::1]"),
    *("[ff02::1]", "[fec0::1]", "[2001:db8::1]", "[fe80::1%25eth0]", "[2606:4700::1%25eth0]", "[::1%251]"),
    *("127%2e0%2e0%2e1", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u24dbocalhost", "a b", "*", "-x"),
]


@pytest.mark.parametrize("host", FORBIDDEN)
@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
async def test_what_is_not_public_is_refused_in_every_spelling(scheme: str, host: str) -> None:
    with pytest.raises(AddressRefused):
        await NOBODY.checked(f"{scheme}://{host}:8080/path?secret=x", "url")


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8\\@127.0.0.1/", "http://8.8.8.8\t/", "http:///x", "ftp://8.8.8.8", "x", ""]
)
async def test_what_programs_read_differently_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        await NOBODY.checked(url, "url")


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700:4700::1111]", "1.1.1.1", "[2a00:1450::1]"])
async def test_what_is_public_is_allowed(host: str) -> None:
    assert (await NOBODY.checked(f"https://{host}/x", "url")).found


@pytest.mark.parametrize(
    ("named", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.0/8", "127.9.9.9"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("localhost", "LocalHost."),
        ("*.internal", "git.internal"),
        ("10.0.0.0/8", "10.1.2.3"),
    ],
)
async def test_what_the_operator_names_is_allowed(named: str, host: str) -> None:
    await AddressRules.reading((named,)).checked(f"http://{host}:1/x", "url")


@pytest.mark.parametrize("named", ["http://127.0.0.1", "127.0.0.1:80", "a b", "", "10.0.0.0/99", "é"])
def test_a_name_that_is_none_is_refused_at_the_start(named: str) -> None:
    with pytest.raises(SettingsError, match="allowed_addresses"):
        AddressRules.reading((named,))


async def test_a_refusal_names_field_host_and_setting_but_no_secret() -> None:
    with pytest.raises(AddressRefused) as refused:
        await NOBODY.checked("http://user:pass@127.0.0.1:11434/path?secret=x", "provider.base_url")
    said = str(refused.value)
    assert "provider.base_url: the address '127.0.0.1:11434'" in said
    assert "`--allowed-address 127.0.0.1` (setting allowed_addresses)" in said
    assert not any(word in said for word in ("user", "pass", "secret", "path"))


def test_a_name_that_nobody_knows_is_told_apart() -> None:
    with pytest.raises(Unresolved):
        NOBODY.resolved(NOBODY.target("http://nobody.invalid/", "url"), "url")


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[int, list[str]]]:
    """A server on loopback, and the hosts it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(str(self.headers["host"]))
            answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def plain(handler: BaseHTTPRequestHandler) -> None:
    """Say hello."""
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"hello")


async def get(rules: AddressRules, url: str, most_bytes: int = 1000) -> httpx.Response:
    """Ask once."""
    async with checked_client(rules, field="url", most_bytes=most_bytes, seconds=60) as client:
        return await client.get(url)


async def test_a_host_is_looked_up_once_and_called_where_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer of a name server that changes its mind is never asked for."""
    real, looked_up = socket.getaddrinfo, list[str]()

    def rebinding(host: str, *args: Any, **more: Any) -> Any:
        if host != "shifty.test":
            return real(host, *args, **more)
        looked_up.append(host)
        return real("127.0.0.1" if len(looked_up) == 1 else "127.66.66.66", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with answering(plain) as (port, asked):
        found = await get(AddressRules.reading(("127.0.0.1",)), f"http://shifty.test:{port}/")
        assert found.text == "hello"
        with pytest.raises(AddressRefused):
            await get(NOBODY, f"http://shifty.test:{port}/")
    assert (asked, len(looked_up)) == ([f"shifty.test:{port}"], 2)


async def test_a_redirect_is_not_followed() -> None:
    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("location", "/other")
        handler.end_headers()

    with answering(elsewhere) as (port, asked):
        assert (await get(AddressRules.reading(("127.0.0.1",)), f"http://127.0.0.1:{port}/")).status_code == 302
    assert len(asked) == 1


async def test_an_answer_that_is_too_large_is_cut_off() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            return

    with answering(endless) as (port, _), pytest.raises(TooMuch):
        await get(AddressRules.reading(("127.0.0.1",)), f"http://127.0.0.1:{port}/")


async def test_a_packed_answer_is_not_unpacked() -> None:
    def packed(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-encoding", "gzip")
        handler.end_headers()
        handler.wfile.write(b"as it is")

    with answering(packed) as (port, _):
        assert (await get(AddressRules.reading(("127.0.0.1",)), f"http://127.0.0.1:{port}/")).content == b"as it is"
