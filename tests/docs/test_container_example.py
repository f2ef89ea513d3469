"""The image of examples/docker is built from parts of this machine, runs without rights, and keeps its sessions."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.pages import ROOT
from tests.support.patience import wait_until
from tests.support.real_engine import IMAGE, import_image, install_engine, podman
from tools.setup import uv_environment

pytestmark = [pytest.mark.root, pytest.mark.lane("work")]
TAG = "localhost/ostler-example:1"
HARDENED = ("--read-only", "--tmpfs=/tmp:rw,exec", "--cap-drop=all", "--security-opt=no-new-privileges")


@pytest.fixture(scope="module")
def engine() -> Iterator[Path]:
    """An engine that has the image."""
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:
        found = install_engine(Path(short) / "podman")
        import_image(found, also=sorted(Path(sysconfig.get_path("purelib")).glob("*/*.so")))
        build = [str(ROOT / "examples" / "docker" / "build.sh"), "--tag", TAG, "--base", IMAGE]
        env = {
            **uv_environment(),
            "ENGINE": str(found / "podman"),
            "PIP": f"{ROOT}/.cache/tools/bin/uv pip",
            "UV_PYTHON": sys.executable,
        }
        done = subprocess.run(build, env=env, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        yield found
        podman(found, "rm", "--all", "--force", "--time=1")


def test_the_image_serves_a_session_without_rights_and_finds_it_again(engine: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 10001, 10001)
    start = ("run", "--detach", "--name", "one", "--network=none", *HARDENED, "--env=OSTLER_TOKEN=secret")
    podman(engine, *start, f"--volume={state}:/var/lib/ostler", TAG)

    def ostler(*words: str) -> str:
        return podman(engine, "exec", "one", "python3", "-m", "ostler", *words)

    def is_ready() -> bool:
        asked = [str(engine / "podman"), "exec", "one", "python3", "-m", "ostler", "system", "ready"]
        return subprocess.run(asked, capture_output=True, check=False, timeout=60).returncode == 0

    wait_until(is_ready, what="the server in the container", seconds=60)
    assert "Hello from inside" in ostler(
        "run", "mock", "mock: say Hello from inside", "--key", "kept", "--keep", "--empty"
    )
    touched = subprocess.run([str(engine / "podman"), "exec", "one", "sh", "-c", "echo x > /opt/x"], check=False)
    assert touched.returncode != 0
    podman(engine, "restart", "--time=5", "one")
    wait_until(is_ready, what="the server after a restart", seconds=60)
    assert json.loads(ostler("sessions", "get", "kept", "--json"))["key"] == "kept"
    health = json.loads(podman(engine, "inspect", TAG))[0]["Healthcheck"]
    assert health["Test"][1:] == ["python3", "-m", "ostler", "system", "ready"]


def test_the_script_says_what_it_does_not_know() -> None:
    script = ROOT / "examples" / "docker" / "build.sh"
    done = subprocess.run([str(script), "--color"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "build.sh: unknown option '--color'. Use --tag NAME or --base IMAGE.\n",
    )
