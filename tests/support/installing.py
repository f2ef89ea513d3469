"""What the tests of installing share: a vendor on loopback, packages made on the spot, and an agent that needs them."""

import io
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import Credential, Installation, Launch
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.runner.installs.installer import Installer
from ostler.wire.running import AgentSpec
from tests.support.runner_parts import PROGRAMS, TinyAdapter

PLATFORM = "linux-x64"
NOTHING: Mapping[str, str] = {}
SEARCH = os.environ.get("PATH", os.defpath).split(os.pathsep)
SCRIPT = f'#!/bin/sh\nexec "{sys.executable}" -I -S "{PROGRAMS / "agent.py"}" "$@"\n'
"""The tiny agent as a program that can be packed."""
Handler = BaseHTTPRequestHandler
Answer = bytes | Callable[[Handler], object]


def installer_in(
    folder: Path, *, seconds: float = 100.0, search: Sequence[str] = SEARCH, environ: Mapping[str, str] = NOTHING
) -> Installer:
    """An installer with a home of its own; how to reach registries is the only thing it gets from outside."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    given = {**os.environ, "HOME": str(home), **environ}
    return Installer(folder / "agents", environ=given, search=search, platform=PLATFORM, seconds=seconds)


class Vendor:
    """A file server: what stands in `files` is answered, all else is not found."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, Answer] = {}
        self.asked: list[str] = []

    def source(self, **fields: Any) -> Download:
        """A source that leads here."""
        chosen: dict[str, Any] = {
            "version_url": f"{self.url}/latest",
            "url": f"{self.url}/{{version}}/agent-{{platform}}",
            "platforms": {PLATFORM: "x86"},
            "program": "agent",
            **fields,
        }
        return Download(**chosen)


@contextmanager
def serving() -> Iterator[Vendor]:
    """A vendor on a free port."""

    class Files(Handler):
        def do_GET(self) -> None:
            vendor.asked.append(self.path)
            answer = vendor.files.get(self.path)
            if callable(answer):
                answer(self)
            elif answer is None:
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
            """Nobody wants to know."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.daemon_threads = True
        vendor = Vendor(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield vendor
        finally:
            server.shutdown()


def begun(handler: Handler, size: int, part: bytes, *, until: threading.Event | None = None) -> None:
    """Answer with less than was announced, at once or only after an event."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(size))
    handler.end_headers()
    handler.wfile.write(part)
    handler.wfile.flush()
    if until is not None:
        until.wait(60)


def tarball(files: dict[str, str]) -> bytes:
    """A .tar.gz; everything in it can be executed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tape:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o755
            tape.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def zipped(files: dict[str, str]) -> bytes:
    """A .zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def npm_source(folder: Path, version: str = "1.2.3") -> Npm:
    """The tiny agent as an npm package in a file, so that no registry is needed."""
    manifest = msgspec.json.encode({"name": "tiny-package", "version": version}).decode()
    file = folder / f"tiny-package-{version}.tgz"
    file.write_bytes(tarball({"package/package.json": manifest, "package/bin/tiny": SCRIPT}))
    return Npm(packages={"tiny-package": f"file:{file}"}, program="tiny-package/bin/*")


class PackedAdapter(TinyAdapter):
    """The tiny agent, from wherever a test says."""

    def __init__(self, *sources: Source, credentials: tuple[Credential, ...] = ()) -> None:
        super().__init__()
        self._sources = sources or (OnPath(program="tiny-agent"),)
        self._credentials = credentials

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._sources

    @property
    def credentials(self) -> tuple[Credential, ...]:
        return self._credentials

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        return Launch(argv=installation.command)
