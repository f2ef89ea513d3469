"""A tiny agent that is a web server: prints its address, streams events, and does what requests say.

Arguments: `broken` has no event stream, `stubborn` does not hear gentle signals.
"""

import base64
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue

EVENTS: "SimpleQueue[str | None]" = SimpleQueue()
PASSWORD = os.environ["WEB_PASSWORD"]
EXPECTED = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
CALLS: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """GET /events streams; POST /do does one thing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        CALLS.append("events")
        if self.headers.get("Authorization") != EXPECTED or "broken" in sys.argv:
            self._answer(b"who are you?", status=401)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while (event := EVENTS.get()) is not None:
            self._chunk(b"event: message\nid: 1\nda")
            self._chunk(f"ta: {event}\n\n: comment\n\n".encode())
        self._chunk(b"")
        self.close_connection = True

    def do_POST(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        CALLS.append("do")
        match order:
            case {"tell": event}:
                EVENTS.put(json.dumps(event, ensure_ascii=False))
            case {"flood": count, "size": size}:
                for number in range(count):
                    EVENTS.put(json.dumps({"number": number, "filler": "x" * size}))
            case {"hang_up": True}:
                EVENTS.put(None)
            case {"die": code}:
                threading.Timer(0.05, os._exit, [code]).start()
            case {"signal": number}:
                threading.Timer(0.05, os.kill, [os.getpid(), number]).start()
            case {"answer": words}:
                self._answer(words.encode())
                return
            case {"promise": count, "keep": words}:
                self._answer(words.encode(), promised=count)
                self.close_connection = True
                return
            case {"vanish": True}:
                self.close_connection = True
                return
            case "who":
                self._answer(json.dumps({"pid": os.getpid(), "password": PASSWORD, "calls": CALLS}, indent=1).encode())
                return
        self._answer(json.dumps({"did": order}).encode())

    def _answer(self, body: bytes, *, status: int = 200, promised: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(promised or len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


if "stubborn" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
sys.stdout.write("warming up\nweb server listen")
sys.stdout.flush()
sys.stdout.write(f"ing on http://127.0.0.1:{server.server_address[1]}\n")
sys.stdout.flush()
sys.stderr.write("and that is all\n")
server.serve_forever()
