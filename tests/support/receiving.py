"""A receiver of webhooks: hears calls, checks their signatures, and answers as it is told."""

import base64
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass
class Receiver:
    """What was heard, in order; `answers` are given in turn, the last one for ever."""

    url: str = ""
    answers: list[int] = field(default_factory=lambda: [200])
    heard: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The `webhook-id` of each call, and its body."""
    forged: int = 0
    go_on: threading.Event = field(default_factory=threading.Event)
    """Calls wait for it before they are answered."""

    def __post_init__(self) -> None:
        self.go_on.set()

    def texts(self, session: str) -> list[int]:
        """The sequences of the events that were told of a session, as they came."""
        return [body["data"]["sequence"] for _, body in self.heard if body["data"].get("session") == session]


@contextmanager
def receiving(*answers: int) -> Iterator[Receiver]:
    """A receiver on a port of this machine."""
    receiver = Receiver(answers=list(answers) or [200])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            name, stamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            mac = hmac.digest(key, f"{name}.{stamp}.".encode() + body, "sha256")
            receiver.forged += self.headers["webhook-signature"] != f"v1,{base64.b64encode(mac).decode()}"
            receiver.heard.append((name, json.loads(body)))
            receiver.go_on.wait(60)
            status = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            self.send_response(status)
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                self.send_header("retry-after", "3600")
            self.send_header("location", receiver.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(60)
