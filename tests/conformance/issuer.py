"""A stub of the services that agents log in at, on loopback: device codes as Codex and as RFC 8628 want them."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CODE = "ABCD-12345"
_ACCOUNT = {"id": "acc", "workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "us"}
_MODEL = {"id": "model", "object": "model", "display_name": "Model", "context_length": 200_000}
_FACTS: dict[str, dict[str, Any]] = {
    "/backend-api/wham/accounts/check": {"accounts": [_ACCOUNT]},
    "/v1/models": {"data": [_MODEL]},
    "/api/keys/llm/byor": {"key": "sk-model"},
    "/api/v1/settings": {"agent_settings": {"llm": {"model": "openai/model"}}},
    "/api/v1/users/me": {"id": "guest"},
    "/copilot_internal/user": {"login": "guest"},
}


class Issuer:
    """Where it is, and whether somebody has entered the code."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.approved = threading.Event()
        self.refused = threading.Event()
        """Whether GitHub gives no code."""


def _token() -> str:
    """An unsigned token of a made-up account."""
    account = {"chatgpt_account_id": "acc", "chatgpt_plan_type": "plus", "chatgpt_user_id": "user"}
    claims = {"email": "guest@example.com", "exp": 4102444800, "https://api.openai.com/auth": account}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2ln"])


def _device(url: str) -> dict[str, Any]:
    page = f"{url}/device"
    whole = {"verification_uri": page, "verification_uri_complete": f"{page}?user_code={CODE}"}
    return {"device_code": "device", "user_code": CODE, "expires_in": 600, "interval": 1, **whole}


def _answer(path: str, issuer: Issuer) -> tuple[int, dict[str, Any]]:
    token, is_in = _token(), issuer.approved.is_set()
    if path.endswith("/deviceauth/usercode"):
        return 200, {"device_auth_id": "device", "user_code": CODE, "interval": "1"}
    if path.endswith("/deviceauth/token"):
        grant = {"authorization_code": "code", "code_challenge": "challenge", "code_verifier": "verifier"}
        return (200, grant) if is_in else (403, {})
    if path.endswith("/login/oauth/access_token") and not is_in:
        return 200, {"error": "authorization_pending"}
    if path.endswith("/login/device/code") and issuer.refused.is_set():
        return 403, {"message": "Device flow is not allowed"}
    if path.endswith(("/device_authorization", "/device/authorize", "/login/device/code")):
        return 200, _device(issuer.url)
    if path.endswith(("/api/oauth/token", "/device/token")) and not is_in:
        return 400, {"error": "authorization_pending"}
    return 200, {"id_token": token, "access_token": token, "refresh_token": "refresh", "expires_in": 3600}


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Serve it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self._answer(*_answer(self.path, issuer))

        def do_GET(self) -> None:
            self._answer(200, _FACTS.get(self.path.partition("?")[0], {}))

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield issuer
        server.shutdown()
