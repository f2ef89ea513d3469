"""The TypeScript SDK in the other runtimes and in a browser, and its package in a project of its own."""

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest

import hatch_build
from tests.client.test_typescript import PROGRAMS, check_thread, play
from tests.support.patience import stretched, wait_until
from tests.support.runtimes import RUNTIMES, runtime
from tests.support.serving import RunningServer, clean_env, running_server
from tools import typescript_sdk as sdk

pytestmark = pytest.mark.timeout(600)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def node() -> Path:
    """A Node, the SDK built, and the runtimes of runtimes/package-lock.json."""
    found = sdk.build()
    with sdk.alone():
        hatch_build.install_packages(found, RUNTIMES)
    return found


def test_a_thread_through_the_sdk_in_bun(node: Path, server: RunningServer, tmp_path: Path) -> None:
    bun = runtime("@oven/bun-linux", "aarch64", "x64", "bin/bun")
    place = (sdk.DIST / "index.js").as_uri()
    check_thread(play([bun, str(PROGRAMS / "node.mjs"), place, server.url], tmp_path))


def test_a_thread_through_the_sdk_in_deno(node: Path, server: RunningServer, tmp_path: Path) -> None:
    deno = runtime("@deno/linux", "arm64-glibc", "x64-glibc", "deno")
    place = (sdk.DIST / "index.js").as_uri()
    allowed = ["run", "--no-remote", "--no-config", "--allow-net=127.0.0.1", "--allow-read"]
    check_thread(play([deno, *allowed, str(PROGRAMS / "node.mjs"), place, server.url], tmp_path))


WORKER = """\
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (compatibilityDate = "2026-01-01", modules = [%s])),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
"""


@contextmanager
def worker(folder: Path) -> Iterator[str]:
    """A worker that plays the thread when it is asked; gives its address."""
    files = {path.name: path for path in (PROGRAMS / "worker.mjs", PROGRAMS / "thread.mjs", *sdk.DIST.glob("*.js"))}
    files.pop("react.js", None)
    for name, path in files.items():
        shutil.copy(path, folder / name)
    modules = ", ".join(f'(name = "{name}", esModule = embed "{name}")' for name in files)
    (folder / "config.capnp").write_text(WORKER % modules)
    workerd = runtime("@cloudflare/workerd-linux", "arm64", "64", "bin/workerd")
    control = folder / "control"
    with control.open("wb") as told:
        command = [workerd, "serve", "config.capnp", "--control-fd=1"]
        process = subprocess.Popen(command, cwd=folder, env=clean_env(folder / "home"), stdout=told)
    try:
        wait_until(lambda: b'"listen"' in control.read_bytes() or process.poll() is not None, "the worker listens")
        port = json.loads(control.read_text().splitlines()[0])["port"]
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def test_a_thread_through_the_sdk_in_a_worker(node: Path, server: RunningServer, tmp_path: Path) -> None:
    with worker(tmp_path) as url:
        answer = httpx.get(url, params={"server": server.url}, timeout=stretched(100))
    assert answer.status_code == 200, answer.text
    check_thread(answer.json())


class Pages(SimpleHTTPRequestHandler):
    """The page with the SDK, and where it tells what it saw."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012 - the base's

    def __init__(self, *args: Any, told: "Queue[Any]", **more: Any) -> None:
        self._told = told
        super().__init__(*args, **more)

    def do_POST(self) -> None:
        """What the page saw."""
        self._told.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[tuple[str, "Queue[Any]"]]:
    """The origin of the page, and what it tells."""
    folder = tmp_path / "pages"
    shutil.copytree(sdk.DIST, folder / "dist")
    for name in ("page.html", "thread.mjs"):
        shutil.copy(PROGRAMS / name, folder / name)
    told: Queue[Any] = Queue()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=str(folder), told=told)) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", told
        served.shutdown()


def test_a_thread_through_the_sdk_in_a_browser(node: Path, pages: tuple[str, "Queue[Any]"], tmp_path: Path) -> None:
    origin, told = pages
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, "There is no Chromium: run `python3 tools/setup.py browser`."
    with (
        running_server(tmp_path / "state", "--cors-origin", origin) as server,
        tempfile.TemporaryDirectory(prefix="sdk-", dir="/tmp") as short,  # a browser's sockets need short names
    ):
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={short}"]
        process = subprocess.Popen(
            [*command, f"{origin}/page.html?server={server.url}"],
            env=clean_env(tmp_path / "home", {"TMPDIR": short}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            check_thread(told.get(timeout=stretched(100)))
        finally:
            process.kill()
            process.wait()


def test_the_package_is_whole_and_its_types_are_found(node: Path) -> None:
    sdk.run(node, "publint/src/cli.js", "--strict")
    sdk.run(node, "@arethetypeswrong/cli/dist/index.js", "--pack", ".", "--profile", "esm-only")


def test_the_packed_package_works_in_a_fresh_project(node: Path, server: RunningServer, tmp_path: Path) -> None:
    npm = [*hatch_build.npm(node), "--no-audit", "--no-fund", "--loglevel", "error"]
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true, "type": "module"}')
    env = {**clean_env(tmp_path / "home"), "npm_config_offline": "true"}
    packed = subprocess.run(
        [*npm, "pack", "--json", "--pack-destination", str(project)],
        cwd=sdk.SDK,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(packed.stdout)[0]
    assert not [file["path"] for file in told["files"] if not file["path"].startswith(("dist/", "README", "package."))]
    subprocess.run([*npm, "install", str(project / told["filename"])], cwd=project, env=env, check=True)
    for program in ("node.mjs", "thread.mjs"):
        shutil.copy(PROGRAMS / program, project / program)
    check_thread(play([str(node), str(project / "node.mjs"), "ostler", server.url], tmp_path))
