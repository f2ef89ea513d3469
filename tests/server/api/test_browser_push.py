"""Notifications of a browser: sealed for it alone, signed for its push service, and ended when it is gone."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.server.api.test_keys import TOKEN, client_of
from tests.server.api.test_sign_in import settings_of, sign_in
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.providers import running_provider
from tests.support.serving import running_server
from tests.support.triggering import new_session, said

_WHERE = {"url": "push:", "events": ["turn.ended"]}


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Browser:
    """One subscription: what the push service got for it, read as the browser reads it (RFC 8188 and 8291)."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = bytes(range(16))
        self.url = ""
        self.status = 201
        self.requests: list[tuple[dict[str, str], bytes]] = []

    @property
    def point(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def keys(self) -> dict[str, str]:
        return {"p256dh": _text(self.point), "auth": _text(self._auth)}

    def read(self, body: bytes) -> dict[str, str]:
        salt, size, sender = body[:16], body[20], body[21:86]
        assert (int.from_bytes(body[16:20], "big"), size) == (4096, 65)
        shared = self._key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = _derived(self._auth, shared, b"WebPush: info\0" + self.point + sender, 32)
        key = _derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
        text = AESGCM(key).decrypt(_derived(salt, secret, b"Content-Encoding: nonce\0", 12), body[86:], None)
        assert text.endswith(b"\2")
        found: dict[str, str] = json.loads(text[:-1])
        return found


def _derived(salt: bytes, material: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(material)


@contextmanager
def push_service() -> Iterator[Browser]:
    browser = Browser()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            browser.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(browser.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.url = f"http://127.0.0.1:{server.server_port}/send/abc"
    try:
        yield browser
    finally:
        server.shutdown()
        server.server_close()


def _public(key: str) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(key))


def test_a_browser_is_told_what_ended_and_only_it_can_read_that(api: httpx.Client) -> None:
    answered = api.post("/webhooks", json=_WHERE)
    assert answered.status_code == 201, answered.text
    made = answered.json()
    assert (made["paused"], "secret" in made) == (True, False)
    with push_service() as browser:
        wanted = {"url": browser.url, "push": browser.keys, "paused": False}
        assert api.patch(f"/webhooks/{made['id']}", json=wanted).json()["pushKey"] == made["pushKey"]
        session = new_session(api, title="Mend the inn")
        said(api, session, "Tea.")
        wait_until(lambda: bool(browser.requests), "the push service was called")
        headers, body = browser.requests[0]
        shown = browser.read(body)
        assert shown.pop("tag").startswith("msg_")
        assert shown == {"title": "Mend the inn", "text": "Done", "url": f"/sessions/{session}"}
        assert b"Mend" not in body
        assert (headers["content-encoding"], headers["ttl"]) == ("aes128gcm", "86400")
        token, key = headers["authorization"].removeprefix("vapid t=").split(", k=")
        assert key == made["pushKey"]
        origin = browser.url.removesuffix("/send/abc")
        assert jwt.decode(token, _public(key), algorithms=["ES256"], audience=origin)["sub"].startswith("mailto:")
        browser.status = 404  # the browser has gone
        said(api, session, "More.")
        wait_until(lambda: "disabled" in api.get(f"/webhooks/{made['id']}").json(), "it is told nothing more")
    assert browser.keys["auth"] not in api.get("/webhooks").text
    api.delete(f"/webhooks/{made['id']}").raise_for_status()


def _subscribed(person: httpx.Client, browser: Browser) -> str:
    """A webhook of a person's browser, which was told once."""
    made = person.post("/webhooks", json=_WHERE).json()
    wanted = {"url": browser.url, "push": browser.keys, "paused": False}
    assert "disabled" not in person.patch(f"/webhooks/{made['id']}", json=wanted).json()
    session = new_session(person)
    said(person, session, "Tea.")
    wait_until(lambda: len(browser.requests) == 1, "the push service was called")
    return str(made["id"])


def _no_more(admin: httpx.Client, webhook: str, browser: Browser) -> None:
    """What happens now is told to no browser, and the webhook says why."""
    assert "signed out" in admin.get(f"/webhooks/{webhook}").json()["disabled"]
    session = new_session(admin)
    said(admin, session, "A secret of those who are left.")
    failed = f"/webhooks/{webhook}/deliveries"
    wait_until(lambda: admin.get(failed).json()["items"][0]["state"] == "failed", "the call is given up")
    assert len(browser.requests) == 1
    assert "signed out" in admin.get("/webhooks").json()["items"][0]["disabled"]


@pytest.mark.lane("server")
def test_a_browser_is_told_nothing_more_when_the_key_it_asked_with_is_revoked(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "state", "--token", TOKEN) as server,
        client_of(server, TOKEN) as admin,
        push_service() as browser,
    ):
        key = admin.post("/api-keys", json={"name": "Ann", "role": "operator"}).json()
        with client_of(server, key["key"]) as person:
            webhook = _subscribed(person, browser)
        admin.delete(f"/api-keys/{key['id']}").raise_for_status()
        _no_more(admin, webhook, browser)


@pytest.mark.lane("server")
def test_a_browser_is_told_nothing_more_when_its_person_is_signed_out(tmp_path: Path) -> None:
    with running_provider() as provider, push_service() as browser:
        provider.granted = {"groups": ["team"], "name": "Anna A."}
        with (
            running_server(tmp_path / "state", *settings_of(provider)) as server,
            httpx.Client(base_url=server.url, timeout=60) as person,
            client_of(server, TOKEN) as admin,
        ):
            sign_in(person, provider)
            person.base_url = httpx.URL(f"{server.url}/api/v1")
            person.headers["origin"] = server.url
            webhook = _subscribed(person, browser)
            actor = person.get("/me").json()["actor"]
            admin.post("/members/sign-out", json={"actor": actor}).raise_for_status()
            _no_more(admin, webhook, browser)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"paused": False}, "url"),
        ({"url": "https://push.example.org/abc"}, "push"),
        ({"url": "https://push.example.org/abc", "push": {"p256dh": "AAAA", "auth": "AAAA"}}, "push"),
        ({"url": "trigger:night", "push": {"p256dh": "AAAA", "auth": "AAAA"}}, "url"),
        ({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "push"),
    ],
)
def test_what_is_no_subscription_is_refused(api: httpx.Client, change: dict[str, object], field: str) -> None:
    made = api.post("/webhooks", json=_WHERE).json()
    assert_problem(api.patch(f"/webhooks/{made['id']}", json=change), "invalid_request", field=field)
    api.delete(f"/webhooks/{made['id']}").raise_for_status()


def test_no_secret_that_somebody_gives_passes_for_a_key_of_the_server(api: httpx.Client) -> None:
    given = {"url": "https://push.example.org/abc", "secret": "vapid_!!"}
    assert_problem(api.post("/webhooks", json={**_WHERE, **given}), "invalid_request", field="secret")
    made = api.post("/webhooks", json={**_WHERE, "url": "https://hooks.example.org/abc"}).json()
    change = {**given, "push": Browser().keys}
    assert_problem(api.patch(f"/webhooks/{made['id']}", json=change), "invalid_request", field="secret")
    assert api.get("/webhooks").status_code == 200
    api.delete(f"/webhooks/{made['id']}").raise_for_status()
