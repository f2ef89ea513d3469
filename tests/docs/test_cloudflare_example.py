"""The example for Cloudflare: its Worker runs in workerd with the package of npm, its container is played."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import hatch_build
from ostler.client import Client
from tests.docs.sandbox_providers import Sandbox, providers
from tests.support.nginx import free_port
from tests.support.patience import wait_until
from tests.support.runtimes import RUNTIMES, runtime
from tests.support.serving import clean_env

pytestmark = pytest.mark.timeout(300)
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "sandboxes"
CONTAINERS = EXAMPLES / "node_modules" / "@cloudflare" / "containers" / "dist"
MODULES = {
    "main.mjs": HERE / "cloudflare_container.mjs",
    "cloudflare.mjs": EXAMPLES / "cloudflare.mjs",
    "@cloudflare/containers": CONTAINERS / "index.js",
    **{f"@cloudflare/lib/{name}": CONTAINERS / "lib" / f"{name}.js" for name in ("container", "helpers", "utils")},
}
"""As workerd names them when they import each other; the first one is the Worker."""
CONFIG = """\
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      compatibilityDate = "2026-01-01",
      modules = [%(modules)s],
      durableObjectNamespaces = [(className = "Ostler", uniqueKey = "ostler", enableSql = true)],
      durableObjectStorage = (localDisk = "disk"),
      bindings = [
        (name = "OSTLER", durableObjectNamespace = "Ostler"),
        (name = "SERVER", service = "server"),
        (name = "PROVIDER", service = "provider"),
        %(token)s
      ],
    )),
    (name = "disk", disk = (path = "disk", writable = true)),
    (name = "server", external = (address = "%(server)s", http = ())),
    (name = "provider", external = (address = "%(provider)s", http = ())),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
"""


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """What npm has for the example, and the runtime."""
    node = hatch_build.find_node()
    assert node is not None, "the example needs Node 20.19 or newer"
    for folder in (EXAMPLES, RUNTIMES):
        hatch_build.install_packages(node, folder)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, Sandbox]]:
    with providers(tmp_path, free_port()) as both:
        yield both


@contextmanager
def worker(folder: Path, place: tuple[str, Sandbox], token: str) -> Iterator[str]:
    """The Worker; gives its address."""
    url, sandbox = place
    modules = []
    for number, (name, path) in enumerate(MODULES.items()):
        shutil.copy(path, folder / f"{number}.js")
        modules.append(f'(name = "{name}", esModule = embed "{number}.js")')
    (folder / "disk").mkdir()
    filled = {
        "modules": ", ".join(modules),
        "token": f'(name = "OSTLER_TOKEN", text = "{token}")' if token else "",
        "server": sandbox.server_url.removeprefix("http://"),
        "provider": url.removeprefix("http://"),
    }
    (folder / "config.capnp").write_text(CONFIG % filled)
    control, workerd = folder / "control", runtime("@cloudflare/workerd-linux", "arm64", "64", "bin/workerd")
    with control.open("wb") as told:
        command = [workerd, "serve", "config.capnp", "--control-fd=1"]
        process = subprocess.Popen(command, cwd=folder, env=clean_env(folder / "home"), stdout=told)
    try:
        wait_until(lambda: b'"listen"' in control.read_bytes() or process.poll() is not None, "the worker listens")
        yield f"http://127.0.0.1:{json.loads(control.read_text().splitlines()[0])['port']}"
    finally:
        process.kill()
        process.wait()


def test_the_first_request_starts_the_container_and_all_of_them_reach_its_server(
    place: tuple[str, Sandbox], tmp_path: Path
) -> None:
    with worker(tmp_path, place, "secret") as url:
        wait_until(lambda: httpx.get(f"{url}/readyz", timeout=60).status_code == 200, "the server is ready")
        with Client(url, token="secret") as ostler:
            session = ostler.sessions.create(agent="mock")
            assert session.run("mock: say from the container").text == "from the container"
        assert httpx.get(f"{url}/api/v1/sessions").status_code == 401
    assert place[1].asked == ["POST /cloudflare/start"]


def test_without_a_token_no_container_is_started(place: tuple[str, Sandbox], tmp_path: Path) -> None:
    with worker(tmp_path, place, "") as url:
        answer = httpx.get(f"{url}/readyz", timeout=60)
    assert (answer.status_code, place[1].asked) == (503, [])
    assert "Set OSTLER_TOKEN" in answer.json()["detail"]
