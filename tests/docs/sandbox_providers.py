"""Providers of sandboxes on loopback, as their own SDKs talk to them; a command of a sandbox really runs, here."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.serving import clean_env

SERVE = "--host 0.0.0.0 --port 2468"
_LINE = {"createdAt": 1, "updatedAt": 1}
_STOP_SECONDS = 20.0


class Sandbox:
    """The one sandbox that there is: what was asked of it, and what it runs."""

    def __init__(self, folder: Path, port: int) -> None:
        self.server_url = f"http://127.0.0.1:{port}"
        self.is_broken = False
        self.asked: list[str] = []
        self.is_removed = False
        self._env: dict[str, str] = {}
        self._folder = folder
        self._serve = f"--host 127.0.0.1 --port {port}"
        self._running: list[subprocess.Popen[bytes]] = []

    def create(self, env: Mapping[str, str]) -> None:
        """Its variables are known."""
        self._env = dict(env)

    def start(self, command: str, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """A command begins; in a broken sandbox nothing comes of it."""
        path = f"{Path(sys.executable).parent}:{clean_env(self._folder / 'home')['PATH']}"
        process = subprocess.Popen(
            ["sh", "-c", "sleep 60" if self.is_broken else command.replace(SERVE, self._serve)],
            env=clean_env(self._folder / "home", {**self._env, **env, "PATH": path}),
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._running.append(process)
        return process

    def remove(self) -> None:
        """All that it runs ends."""
        self.is_removed = True
        self.end()

    def end(self) -> None:
        """End what runs, and what that has put into the background."""
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(_STOP_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    sandbox: Sandbox
    url: str

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Nobody wants to know."""

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        self._route("POST")

    def do_DELETE(self) -> None:
        self._route("DELETE")

    def _route(self, method: str) -> None:
        body = self._body()
        asked = f"{method} {self.path.partition('?')[0]}"
        self.sandbox.asked.append(asked)
        for pattern, answer in _ROUTES.items():
            if re.fullmatch(pattern, asked):
                return answer(self, body)
        return self.send_error(404)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def answer(self, status: int, body: object, kind: str = "application/json") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # E2B

    def e2b_create(self, body: bytes) -> None:
        self.sandbox.create(json.loads(body)["envVars"])
        known = {"sandboxID": "sbx1", "templateID": "base", "clientID": "x", "envdVersion": "0.4.0"}
        self.answer(201, {**known, "envdAccessToken": "t", "domain": None})

    def e2b_start(self, body: bytes) -> None:
        asked = json.loads(body[5:])["process"]
        process = self.sandbox.start(asked["args"][-1], asked.get("envs", {}))
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.end_headers()
        self._frame(0, {"event": {"start": {"pid": process.pid}}})
        code = process.wait()
        self._frame(0, {"event": {"data": {"stdout": base64.b64encode(b"done").decode()}}})
        self._frame(0, {"event": {"end": {"exitCode": code, "exited": True, "status": f"exit status {code}"}}})
        self._frame(2, {})

    def _frame(self, flag: int, message: object) -> None:
        content = json.dumps(message).encode()
        with suppress(OSError):
            self.wfile.write(bytes([flag]) + len(content).to_bytes(4, "big") + content)
            self.wfile.flush()

    def e2b_remove(self, _: bytes) -> None:
        self.sandbox.remove()
        self.send_response(204)
        self.end_headers()

    # Daytona

    def daytona_create(self, body: bytes) -> None:
        self.sandbox.create(json.loads(body)["env"])
        self.daytona_get(body)

    def daytona_get(self, _: bytes) -> None:
        known = {
            "id": "sbx1",
            "name": "sbx1",
            "organizationId": "o",
            "user": "u",
            "env": {},
            "labels": {},
            "public": False,
        }
        self.answer(200, {**known, "state": "started", "target": "t", "toolboxProxyUrl": f"{self.url}/toolbox"})

    def daytona_run(self, body: bytes) -> None:
        asked = json.loads(body)
        code = 0 if self.sandbox.is_broken else self.sandbox.start(asked["command"], asked.get("envs") or {}).wait()
        self.answer(200, {"exitCode": code, "result": ""})

    def daytona_address(self, _: bytes) -> None:
        self.answer(200, {"sandboxId": "sbx1", "url": self.sandbox.server_url, "token": "t"})

    def daytona_remove(self, body: bytes) -> None:
        self.sandbox.remove()
        self.daytona_get(body)

    # Vercel

    def vercel_create(self, body: bytes) -> None:
        asked = json.loads(body)
        self.sandbox.create(asked["env"])
        routes = [{"url": "x", "subdomain": f"sub{port}", "port": port} for port in asked["ports"]]
        self.answer(200, {**self._vercel("running"), "routes": routes})

    def _vercel(self, status: str) -> dict[str, Any]:
        session = {"id": "ses1", "memory": 2048, "vcpus": 1, "region": "r", "timeout": 1, "requestedAt": 1, "cwd": "/"}
        sandbox = {"name": "sbx1", "persistent": False, "currentSessionId": "ses1", **_LINE, "status": status}
        return {"sandbox": sandbox, "session": {**session, **_LINE, "status": status}}

    def vercel_run(self, body: bytes) -> None:
        asked = json.loads(body)
        process = self.sandbox.start(asked["args"][-1], asked.get("env") or {})
        command = {"id": "cmd1", "name": "sh", "args": [], "cwd": "/", "sessionId": "ses1", "startedAt": 1}
        begun = {"command": {**command, "exitCode": None}}
        if not asked.get("wait"):
            self.answer(200, begun)
            return
        lines = [begun, {"command": {**command, "exitCode": process.wait()}}]
        self.answer(200, "".join(f"{json.dumps(line)}\n" for line in lines).encode(), "application/x-ndjson")

    def vercel_stop(self, _: bytes) -> None:
        self.sandbox.remove()
        self.answer(200, self._vercel("stopped"))

    # Cloudflare: what `cloudflare_container.mjs` asks for when its Worker starts the container

    def cloudflare_start(self, body: bytes) -> None:
        self.sandbox.start(f"exec ostler serve {SERVE}", json.loads(body)["env"])
        self.answer(200, {})


_ROUTES: dict[str, Callable[[_Handler, bytes], None]] = {
    r"POST /e2b/v2/sandboxes": _Handler.e2b_create,
    r"POST /envd/process.Process/Start": _Handler.e2b_start,
    r"DELETE /e2b/sandboxes/sbx1": _Handler.e2b_remove,
    r"POST /daytona/sandbox": _Handler.daytona_create,
    r"GET /daytona/sandbox/sbx1": _Handler.daytona_get,
    r"POST /toolbox/sbx1/process/execute": _Handler.daytona_run,
    r"GET /daytona/sandbox/sbx1/ports/2468/preview-url": _Handler.daytona_address,
    r"DELETE /daytona/sandbox/sbx1": _Handler.daytona_remove,
    r"POST /vercel/api/v[23]/sandboxes": _Handler.vercel_create,
    r"POST /vercel/api/v2/sandboxes/sessions/ses1/cmd": _Handler.vercel_run,
    r"POST /vercel/api/v2/sandboxes/sessions/ses1/stop": _Handler.vercel_stop,
    r"POST /cloudflare/start": _Handler.cloudflare_start,
}


@contextmanager
def providers(folder: Path, port: int) -> Iterator[tuple[str, Sandbox]]:
    """All of them at one address, with one sandbox whose server gets this port."""
    sandbox = Sandbox(folder, port)
    handler = type("Handler", (_Handler,), {"sandbox": sandbox})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        handler.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]  # made right above
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield handler.url, sandbox  # type: ignore[attr-defined]  # made right above
        finally:
            sandbox.end()
            server.shutdown()
