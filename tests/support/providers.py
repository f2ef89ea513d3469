"""An OpenID provider on loopback that signs what tests ask for, and can be turned off."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "https://ostler.example.com"
WEB_CLIENT, WEB_SECRET = "web", "web-secret"
_RSA_BITS = 2048


class Provider:
    """Its keys by their names, and how often it was asked for them."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.keys: dict[str, Any] = {}
        self.asked = 0
        self.redeemed = 0
        """How often somebody wanted tokens for a code."""
        self.is_away = False
        self.names_itself: str | None = None
        self.refresh_tokens: list[str] = []
        """Of one person who signed in with the device flow; only the last one is good, and an earlier one ends all."""
        self.renewed = 0
        self.polls_before_yes = 1
        self.seconds = 600
        self.are_seconds_text = False
        self.granted: dict[str, Any] = {}
        """Claims of the tokens that people get here."""
        self.codes: dict[str, dict[str, Any]] = {}
        """What was asked for with each code that nobody has redeemed yet."""
        self.add_key("k1")

    def add_key(self, name: str, *, is_rsa: bool = False) -> None:
        self.keys[name] = (
            rsa.generate_private_key(65537, _RSA_BITS) if is_rsa else ec.generate_private_key(ec.SECP256R1())
        )

    def document(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.names_itself or self.issuer,
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint": f"{self.issuer}/token",
                "device_authorization_endpoint": f"{self.issuer}/device",
                "authorization_endpoint": f"{self.issuer}/authorize",
                "end_session_endpoint": f"{self.issuer}/leave",
                "scopes_supported": ["openid", "offline_access"],
                "authorization_response_iss_parameter_supported": True,
            }
        if path != "/keys":
            return None
        self.asked += 1
        return {"keys": [self._shown(name) for name in self.keys]}

    def came(self, asked: str, **claims: Any) -> str:
        """Somebody signs in where a server sent their browser; the address that the browser is sent back to."""
        query = dict(parse_qsl(urlsplit(asked).query))
        code = f"c{len(self.codes)}"
        self.codes[code] = {**query, "claims": {"sub": "anna", "nonce": query["nonce"], **self.granted, **claims}}
        back = urlencode({"code": code, "state": query["state"], "iss": self.issuer})
        return f"{query['redirect_uri']}?{back}"

    def _redeemed(self, form: dict[str, str], basic: str) -> tuple[int, dict[str, Any]]:
        """The tokens for a code, which is good once, and for the client that asked and can show that."""
        self.redeemed += 1
        known = self.codes.pop(form.get("code", ""), None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=")
        expected = base64.b64encode(f"{WEB_CLIENT}:{WEB_SECRET}".encode()).decode()
        if basic != f"Basic {expected}":
            return 401, {"error": "invalid_client"}
        if known is None or known["code_challenge"] != proof.decode() or known["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant", "error_description": "grant request is invalid"}
        token = self.token(headers={"typ": "JWT"}, **{"aud": WEB_CLIENT, **known["claims"]})
        return 200, {"id_token": token, "access_token": "opaque", "token_type": "Bearer"}

    def answer(self, path: str, form: dict[str, str], basic: str) -> tuple[int, dict[str, Any]]:
        if form.get("grant_type") == "authorization_code":
            return self._redeemed(form, basic)
        if form.get("client_id") != "cli":
            return 400, {"error": "invalid_client"}
        if path == "/device":
            page = f"{self.issuer}/activate?code=ABCD"
            return 200, {"device_code": "d1", "user_code": "ABCD", "verification_uri_complete": page, "interval": 0.05}
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens[-1:]:
                self.refresh_tokens.clear()
                return 400, {"error": "invalid_grant"}
            self.renewed += 1
        elif self.polls_before_yes > 0:
            self.polls_before_yes -= 1
            return 400, {"error": "authorization_pending"}
        self.refresh_tokens.append(f"r{len(self.refresh_tokens)}")
        token = self.token(exp=int(time.time()) + self.seconds, **self.granted)
        seconds = str(self.seconds) if self.are_seconds_text else self.seconds
        return 200, {"access_token": token, "expires_in": seconds, "refresh_token": self.refresh_tokens[-1]}

    def _shown(self, name: str) -> dict[str, Any]:
        key = self.keys[name].public_key()
        is_rsa = isinstance(key, rsa.RSAPublicKey)
        shown = json.loads((RSAAlgorithm if is_rsa else ECAlgorithm).to_jwk(key))
        return {**shown, "kid": name, "use": "sig", "alg": "RS256" if is_rsa else "ES256"}

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        known = {"iss": self.issuer, "aud": AUDIENCE, "sub": "anna", "iat": now, "exp": now + 600, **changed}
        return {name: value for name, value in known.items() if value is not None}

    def token(self, key: str = "k1", *, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        signer = self.keys[key]
        algorithm = "RS256" if isinstance(signer, rsa.RSAPrivateKey) else "ES256"
        given = {"kid": key, "typ": "at+jwt", **(headers or {})}
        return jwt.encode(self.claims(**claims), signer, algorithm=algorithm, headers=given)

    def unsigned(self, algorithm: str = "none", **claims: Any) -> str:
        parts = ({"alg": algorithm, "typ": "JWT", "kid": "k1"}, self.claims(**claims))
        return ".".join([*(_encoded(json.dumps(part).encode()) for part in parts), ""])


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@contextmanager
def running_provider() -> Iterator[Provider]:
    """A provider at an address of its own."""

    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = None if provider.is_away else provider.document(self.path)
            self.tell(503 if provider.is_away else 404 if found is None else 200, found)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            with one_at_a_time:
                basic = self.headers.get("authorization", "")
                self.tell(
                    *((503, {}) if provider.is_away else provider.answer(self.path, dict(parse_qsl(body)), basic))
                )

        def tell(self, status: int, found: dict[str, Any] | None) -> None:
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with served_by(Handler) as port:
        provider = Provider(f"http://127.0.0.1:{port}")
        yield provider


@contextmanager
def served_by(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port on which it answers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
