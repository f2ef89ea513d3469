"""The HTTP server of the scripted model."""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from ostler.conformance.model.actions import Block, Call, Fault, Reply, Say, Wait
from ostler.conformance.model.anthropic import Anthropic
from ostler.conformance.model.caching import Cache
from ostler.conformance.model.chat import ChatCompletions
from ostler.conformance.model.conversation import Json
from ostler.conformance.model.dialect import Dialect, Frame, _tokens
from ostler.conformance.model.gemini import Gemini
from ostler.conformance.model.limits import limited
from ostler.conformance.model.responses import Responses
from ostler.conformance.model.script import Player
from ostler.conformance.model.strict import objection_to

_POLL_SECONDS = 0.02
"""How soon the server notices that it should end."""


def pick_dialect(path: str) -> Dialect | None:
    if path.endswith("/messages"):
        return Anthropic()
    if path.endswith("/responses"):
        return Responses()
    if path.endswith("/chat/completions"):
        return ChatCompletions()
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return Gemini()
    return None


def _seconds(block: Block) -> float:
    """How long a block takes when it is streamed."""
    match block:
        case Wait():
            return block.seconds
        case Say():
            return block.chunks * block.interval
        case _:
            return 0.0


def _failed(dialect: Dialect, fault: Fault) -> tuple[int, Json, Mapping[str, str]]:
    body = dialect.error(fault.status)
    if fault.words:
        body["error"]["message"] = fault.words
    return fault.status, body, {} if fault.after is None else {"retry-after": f"{fault.after:g}"}


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
        pass

    # -- requests

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.record(path, "GET", None)
        if path.rstrip("/").endswith("/models"):
            self._send_json(200, self._model_list())
        else:
            self._send_json(404, {"error": {"message": f"no such path: {path}"}})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        raw = self._read_body()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            self._send_json(400, {"error": {"message": "body is not JSON"}})
            return
        self.server.record(path, "POST", body)
        if path.endswith("/count_tokens"):
            self._send_json(200, {"input_tokens": _tokens(json.dumps(body))})
            return
        if path.endswith(":countTokens"):
            self._send_json(200, {"totalTokens": _tokens(json.dumps(body))})
            return
        dialect = pick_dialect(path)
        if dialect is None:
            self._send_json(404, {"error": {"message": f"no such path: {path}"}})
            return
        conv = dialect.parse(body, path)
        conv.signs = self.server.is_strict
        if self.server.is_strict and (objection := objection_to(body, path)) is not None:
            self.server.object(objection)
            self._send_json(400, {"error": {"type": "invalid_request_error", "message": objection}})
            return
        if self.server.cache is not None:
            conv.counted = self.server.cache.count(body)
        reply = self.server.player.reply(conv)
        self.server.note(reply)
        if reply.fault and reply.fault.kind == "limit":
            self._send_json(reply.fault.status, *limited(int(time.time()) + reply.fault.seconds))
        elif reply.fault and reply.fault.kind == "status":
            self._send_json(*_failed(dialect, reply.fault))
        elif conv.stream:
            self._send_stream(dialect.stream(reply, conv), reply.fault, dialect)
        else:
            self._send_whole(dialect.whole(reply, conv), reply)

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    # -- responses

    def _send_json(self, status: int, body: Json, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send_whole(self, body: Json, reply: Reply) -> None:
        time.sleep(sum(map(_seconds, reply.blocks)))  # a whole answer takes as long as a streamed one
        if reply.fault is None:
            self._send_json(200, body)
            return
        # Agents fall back to a non-streaming call when a stream breaks: break it too.
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "24" if reply.fault.kind == "malformed" else "4096")
        self.end_headers()
        self.wfile.write(b'{"type": "broken", oops\n')
        self.close_connection = True

    def _send_stream(self, frames: Iterator[Frame], fault: Fault | None, dialect: Dialect) -> None:
        sent = 0
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for frame in frames:
                if frame.pause:
                    time.sleep(frame.pause)
                if fault and sent >= 6:
                    self._break(fault, dialect)
                    return
                self._write_chunk(self._sse(frame))
                sent += 1
            self._write_chunk(b"")
        except (BrokenPipeError, ConnectionResetError):
            # The agent hung up: that is what an interrupt looks like from here.
            self.close_connection = True
            self.server.hung_up()

    def _break(self, fault: Fault, dialect: Dialect) -> None:
        """End a stream before its end; `cut` just closes the connection."""
        if fault.kind == "malformed":
            self._write_chunk(b'event: message\ndata: {"type": "broken", oops\n\n')
        if fault.kind == "inside":
            self._write_chunk(self._sse(dialect.broken_off("Scripted overload")))
        if fault.kind != "cut":
            self._write_chunk(b"")
        self.close_connection = True

    @staticmethod
    def _sse(frame: Frame) -> bytes:
        data = frame.data if isinstance(frame.data, str) else json.dumps(frame.data)
        head = f"event: {frame.event}\n" if frame.event else ""
        return f"{head}data: {data}\n\n".encode()

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    @staticmethod
    def _model_list() -> Json:
        """A model list that OpenAI-, Anthropic- and Gemini-style clients all accept."""
        return {
            "object": "list",
            "data": [
                {
                    "id": name,
                    "object": "model",
                    "type": "model",
                    "display_name": name,
                    "created": 0,
                    "created_at": "2026-01-01T00:00:00Z",
                    "owned_by": "scripted",
                }
                for name in ("scripted-large", "scripted-small")
            ],
            "models": [{"name": "models/scripted-large", "displayName": "scripted-large"}],
            "has_more": False,
        }


class ModelServer(ThreadingHTTPServer):
    """Plays scripts and remembers what it was asked."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], on_event: Callable[[Json], None], *, is_strict: bool, counts: bool
    ) -> None:
        super().__init__(address, Handler)
        self.is_strict = is_strict
        self.cache = Cache() if counts else None
        self.player = Player()
        self._on_event = on_event

    def record(self, path: str, method: str, body: Json | None) -> None:
        self._on_event({"event": "request", "method": method, "path": path, "body": body})

    def note(self, reply: Reply) -> None:
        blocks = [
            {"call": b.tool.name, "arguments": b.arguments}
            if isinstance(b, Call)
            else {type(b).__name__.lower(): getattr(b, "text", None) or getattr(b, "seconds", None)}
            for b in reply.blocks
        ]
        fault = {"fault": vars(reply.fault)} if reply.fault else {}
        self._on_event({"event": "reply", "blocks": blocks} | fault)

    def object(self, why: str) -> None:
        self._on_event({"event": "objection", "why": why})

    def hung_up(self) -> None:
        self._on_event({"event": "client_hung_up"})

    def handle_error(self, request: Any, client_address: Any) -> None:
        # One broken client connection must not print a traceback over the test output.
        self._on_event({"event": "handler_error"})


class ScriptedModel:
    """The server, run in a thread: `with ScriptedModel() as model: ...`."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        log: str | None = None,
        *,
        is_strict: bool = False,
        counts_cache: bool = False,
    ) -> None:
        """A strict one signs what it thinks and refuses histories that a real one would."""
        self.events: list[Json] = []
        self._lock = threading.Lock()
        self._log = Path(log).open("a", encoding="utf-8") if log else None  # noqa: SIM115  closed with the server
        self._server = ModelServer((host, port), self._event, is_strict=is_strict, counts=counts_cache)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Json]:
        with self._lock:
            return [e for e in self.events if e["event"] == "request"]

    def _event(self, event: Json) -> None:
        event = {"t": round(time.time(), 3), **event}
        with self._lock:
            self.events.append(event)
            if self._log:
                self._log.write(json.dumps(event) + "\n")
                self._log.flush()

    def knows(self, native_session_id: str) -> bool:
        """Whether a service that keeps conversations has this one; a model keeps none."""
        return bool(native_session_id)

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        if self._log:
            self._log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8899)
    parser.add_argument("--log", help="append every request and reply to this JSONL file")
    args = parser.parse_args()
    with ScriptedModel(args.host, args.port, args.log) as model:
        print(f"scripted model at {model.url}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
