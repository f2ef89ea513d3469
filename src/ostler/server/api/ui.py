"""Serves the built web UI: its files, and its one page for every address a person may open."""

import gzip
import mimetypes
from collections.abc import Awaitable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from ostler.server.api.edge.asgi import App, Receive, Scope, Send

WEB = Path(str(files("ostler"))) / "_web"
_PAGE = "index.html"
_CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'; object-src 'none'"
)
_ALWAYS = {"content-security-policy": _CSP, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
_FOR_A_YEAR = "public, max-age=31536000, immutable"
_TEXTS = ("text/", "application/javascript", "application/json", "image/svg")
_NOT_BUILT = (
    b"The web UI is not built. In a checkout, `make web` builds it (it needs Node 20.19 or newer, or installs it).\n"
    b"The API works without it and is described at /api/v1/openapi.json.\n"
)


class _File(NamedTuple):
    body: bytes
    zipped: bytes | None
    media_type: str


class Ui:
    """ASGI application between the gate and the API: takes what a browser opens, and passes on all else.

    The API may have paths with the same names, so a page is given only to who asks for HTML, as browsers do.
    """

    def __init__(self, app: App, folder: Path = WEB) -> None:
        self._app = app
        self._folder = folder

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer with a file, the page, or what the API says; no frame of ours stays around a stream of the API."""
        name = wanted_file(scope)
        file = _load(self._folder, _version(self._folder)).get(name) if name else None
        if file is not None and name is not None:
            return _answer(scope, send, 200, file, _FOR_A_YEAR if name.startswith("assets/") else "no-cache")
        if name == _PAGE:
            return _answer(scope, send, 503, _File(_NOT_BUILT, None, "text/plain; charset=utf-8"), "no-store")
        return self._app(scope, receive, send)


def wanted_file(scope: Scope) -> str | None:
    """The file of the UI that a request is about, if it is about the UI; everybody may have it, it holds no secrets."""
    if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
        return None
    path: str = scope["path"]
    first, last = path.split("/")[1], path.rsplit("/", 1)[1]
    if path == "/":
        return _PAGE
    if path.startswith("/assets/") or path in {
        "/favicon.svg",
        "/manifest.webmanifest",
        "/sw.js",
        "/icon-192.png",
        "/icon-512.png",
    }:
        return path[1:]
    accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    may_be_page = first == "sessions" or ("." not in last and first not in {"api", "v1", "healthz", "readyz"})
    is_page = b"text/html" in accepts and may_be_page  # a session may have a key with dots, such as v1.2
    return _PAGE if is_page else None


def _version(folder: Path) -> int:
    """Changes with every build, so that a rebuilt UI needs no restart."""
    page = folder / _PAGE
    return page.stat().st_mtime_ns if page.is_file() else 0


@lru_cache(maxsize=2)
def _load(folder: Path, version: int) -> dict[str, _File]:
    """Every file of this version of the UI by its name: less than a megabyte, and no name can lead outside."""
    found = (path for path in folder.rglob("*") if path.is_file()) if version else ()
    return {path.relative_to(folder).as_posix(): _read(path) for path in found}


def _read(path: Path) -> _File:
    body = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if not kind.startswith(_TEXTS):
        return _File(body, None, kind)
    return _File(body, gzip.compress(body, 6, mtime=0), f"{kind}; charset=utf-8")


async def _answer(scope: Scope, send: Send, status: int, file: _File, cache: str) -> None:
    accepts = next((value for name, value in scope["headers"] if name == b"accept-encoding"), b"")
    zipped = file.zipped if b"gzip" in accepts else None
    body = file.body if zipped is None else zipped
    fields = {**_ALWAYS, "content-type": file.media_type, "cache-control": cache, "content-length": str(len(body))}
    fields |= {"vary": "accept-encoding"} if file.zipped else {}
    fields |= {"content-encoding": "gzip"} if zipped is not None else {}
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
