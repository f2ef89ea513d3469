"""A tiny agent that is a web server: prints its address, streams events, and does what requests say."""

import base64
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue

EVENTS: "SimpleQueue[str | None]" = SimpleQueue()
EXPECTED = "Basic " + base64.b64encode(f"me:{os.environ['WEB_PASSWORD']}".encode()).decode()


class Handler(BaseHTTPRequestHandler):
    """GET /events streams; POST /do does one thing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != EXPECTED or "broken" in sys.argv:
            self._answer(401, b"who are you?")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while (event := EVENTS.get()) is not None:
            self.wfile.write(f"event: message\nid: 1\ndata: {event}\n\n: comment\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def do_POST(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match order:
            case {"tell": event}:
                EVENTS.put(json.dumps(event, ensure_ascii=False))
            case {"flood": count}:
                for number in range(count):
                    EVENTS.put(json.dumps({"number": number, "filler": "x" * 10_000}))
            case {"hang_up": True}:
                EVENTS.put(None)
            case {"die": code}:
                threading.Timer(0.05, os._exit, [code]).start()
        self._answer(200, json.dumps({"did": order}).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
sys.stdout.write("warming up\nweb server listen")
sys.stdout.flush()
sys.stdout.write(f"ing on http://127.0.0.1:{server.server_address[1]}\n")
sys.stdout.flush()
server.serve_forever()
