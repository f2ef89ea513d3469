"""A stand-in for `opencode serve`: the few doors that the adapter uses, and a model that does what prompts say.

Prompts: `say WORDS`, `who` (its number and what it has of the variable WHO), `recall` (how many prompts this
conversation had), `hold` (works until it is aborted), `ask` (waits for a permission), `die`. Conversations lie in its
home, a line for each prompt and each abort.
"""

import base64
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import parse_qs, urlsplit

EXPECTED = "Basic " + base64.b64encode(f"opencode:{os.environ['OPENCODE_SERVER_PASSWORD']}".encode()).decode()
CONVERSATIONS = Path(os.environ["HOME"]) / "conversations"
LISTENERS: list[tuple[str, "SimpleQueue[bytes]"]] = []
DIRECTORIES: dict[str, str] = {}
WAITS: dict[str, "SimpleQueue[str]"] = {}


def tell(session: str, kind: str, **properties: Any) -> None:
    """An event for all who listen to the directory of a session."""
    event = {"type": kind, "properties": {"sessionID": session, **properties}}
    for directory, events in list(LISTENERS):
        if directory == DIRECTORIES.get(session):
            events.put(b"data: %b\n\n" % json.dumps(event).encode())


def note(session: str, line: str) -> int:
    """Add a line to a conversation; how many prompts it has."""
    with (CONVERSATIONS / session).open("a") as file:
        file.write(f"{line}\n")
    return (CONVERSATIONS / session).read_text().count("prompt ")


class Turn(threading.Thread):
    """One answer."""

    def __init__(self, session: str, text: str) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._text = text
        self._count = note(session, f"prompt {text}")

    def run(self) -> None:
        user, own = f"msg_u{self._count}", f"msg_a{self._count}"
        self._message(user, "user")
        tell(self._session, "session.status", status={"type": "busy"})
        self._message(own, "assistant", parentID=user)
        words = self._words()
        if words is None:
            tell(self._session, "session.error", error={"name": "MessageAbortedError"})
            tell(self._session, "session.idle")
        else:
            self._part(own, words, end=1)
        self._message(own, "assistant", completed=1, parentID=user)
        tell(self._session, "session.idle")

    def _words(self) -> str | None:
        word, _, rest = self._text.partition(" ")
        match word:
            case "who":
                return f"{os.getpid()} {os.environ.get('WHO')}"
            case "recall":
                return f"{self._count} prompts"
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hold" | "ask":
                return self._wait(word)
        return rest

    def _wait(self, word: str) -> str | None:
        waits = WAITS[self._session] = SimpleQueue()
        if word == "ask":
            tell(self._session, "permission.asked", id=f"per-{self._session}", permission="bash", patterns=["ls"])
        else:
            self._part(f"msg_a{self._count}", "holding")
        heard = waits.get()
        return None if heard == "abort" else heard

    def _message(self, native: str, role: str, completed: int | None = None, **more: Any) -> None:
        info = {"id": native, "sessionID": self._session, "role": role, "time": {"completed": completed}, **more}
        tell(self._session, "message.updated", info=info)

    def _part(self, message: str, text: str, end: int | None = None) -> None:
        part = {"id": f"prt_{message}", "sessionID": self._session, "messageID": message, "type": "text", "text": text}
        tell(self._session, "message.part.updated", part={**part, "time": {"end": end}})


class Handler(BaseHTTPRequestHandler):
    """The doors."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_GET(self) -> None:
        path, query = self._asked()
        match path:
            case ["event"]:
                self._stream(query["directory"][0])
            case ["config", "providers"]:
                self._answer({"providers": []})
            case ["agent"]:
                self._answer([])
            case ["session", session]:
                DIRECTORIES[session] = query["directory"][0]
                self._answer({"id": session}, 200 if (CONVERSATIONS / session).exists() else 404)

    def do_POST(self) -> None:
        path, query = self._asked()
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        match path:
            case ["session"]:
                session = f"ses_{os.urandom(6).hex()}"
                DIRECTORIES[session] = query["directory"][0]
                note(session, "begin")
                self._answer({"id": session, "version": "1.18.18"})
            case ["session", session, "prompt_async"]:
                Turn(session, body["parts"][0]["text"]).start()
                self._answer(None)
            case ["session", session, "abort"]:
                note(session, "abort")
                if waits := WAITS.pop(session, None):
                    waits.put("abort")
                self._answer(True)
            case ["permission", ask, "reply"]:
                WAITS.pop(ask.removeprefix("per-")).put(f"heard {body['reply']}")
                self._answer(True)

    def _asked(self) -> tuple[list[str], dict[str, list[str]]]:
        if self.headers.get("Authorization") != EXPECTED:
            self._answer("who are you?", 401)
        url = urlsplit(self.path)
        return url.path.strip("/").split("/"), parse_qs(url.query)

    def _stream(self, directory: str) -> None:
        events: SimpleQueue[bytes] = SimpleQueue()
        LISTENERS.append((directory, events))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(events.get())
            self.wfile.flush()

    def _answer(self, body: Any, status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if "--version" in sys.argv:
    sys.exit("1.18.18")
if message := os.environ.get("REFUSE"):
    sys.exit(message)
CONVERSATIONS.mkdir(parents=True, exist_ok=True)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
sys.stdout.write(f"opencode server listening on http://127.0.0.1:{server.server_address[1]}\n")
sys.stdout.flush()
server.serve_forever()
