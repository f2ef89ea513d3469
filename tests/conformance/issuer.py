"""A stub of the service that Codex logs in at: three routes, on loopback."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CODE = "ABCD-12345"


class Issuer:
    """Where it is, and whether somebody has entered the code."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.approved = threading.Event()


def _token() -> str:
    """An unsigned token of a made-up account."""
    account = {"chatgpt_account_id": "acc", "chatgpt_plan_type": "plus", "chatgpt_user_id": "user"}
    claims = {"email": "guest@example.com", "exp": 4102444800, "https://api.openai.com/auth": account}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2ln"])


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Serve it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.path.endswith("/deviceauth/usercode"):
                self._answer(200, {"device_auth_id": "device", "user_code": CODE, "interval": "1"})
            elif self.path.endswith("/deviceauth/token"):
                grant = {"authorization_code": "code", "code_challenge": "challenge", "code_verifier": "verifier"}
                self._answer(200, grant) if issuer.approved.is_set() else self._answer(403, {})
            else:
                token = _token()
                self._answer(200, {"id_token": token, "access_token": token, "refresh_token": "refresh"})

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
