"""The examples for sandboxes, with the SDKs of their providers as npm has them, against providers on loopback."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import hatch_build
from ostler.client import Client
from tests.docs.sandbox_providers import Sandbox, providers
from tests.support.nginx import free_port
from tests.support.serving import clean_env

pytestmark = pytest.mark.timeout(300)
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "sandboxes"
NAMES = ("e2b", "daytona", "vercel")
Play = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def node() -> Path:
    """A Node, with the SDKs beside the examples."""
    found = hatch_build.find_node()
    assert found is not None, "the examples need Node 20.19 or newer"
    hatch_build.install_packages(found, EXAMPLES)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, Sandbox]]:
    with providers(tmp_path, free_port()) as both:
        yield both


@pytest.fixture
def play(node: Path, place: tuple[str, Sandbox], tmp_path: Path) -> Play:
    url, sandbox = place
    places = {
        "https://vercel.com/": f"{url}/vercel/",
        "https://2468-sbx1.e2b.app": sandbox.server_url,
        "https://sub2468.vercel.run": sandbox.server_url,
    }

    def run(name: str, **more: str) -> "subprocess.CompletedProcess[str]":
        env = clean_env(
            tmp_path / "own-home",
            {
                "PLACES": json.dumps(places),
                "E2B_API_KEY": f"e2b_{'0' * 40}",
                "E2B_API_URL": f"{url}/e2b",
                "E2B_SANDBOX_URL": f"{url}/envd",
                "DAYTONA_API_KEY": "fake",
                "DAYTONA_API_URL": f"{url}/daytona",
                "VERCEL_TOKEN": "fake",
                "VERCEL_TEAM_ID": "team_fake",
                "VERCEL_PROJECT_ID": "prj_fake",
                "VERCEL_TELEMETRY_DISABLED": "1",
                **more,
            },
        )
        words = [str(node), "--import", str(HERE / "loopback_only.mjs"), str(EXAMPLES / f"{name}.mjs")]
        return subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_provider_starts_a_server_that_answers(
    play: Play, place: tuple[str, Sandbox], tmp_path: Path, name: str
) -> None:
    sandbox = place[1]
    done = play(name, OSTLER_TOKEN="secret", OSTLER_INSTALL=f"echo yes >{tmp_path}/installed")
    assert done.returncode == 0, done.stderr[-3000:] + "\n".join(sandbox.asked)
    assert (tmp_path / "installed").read_text() == "yes\n"
    assert json.loads(done.stdout.splitlines()[-1])["url"].startswith("http")
    with Client(sandbox.server_url, token="secret") as ostler:
        assert ostler.sessions.create(agent="mock").run("mock: say from the sandbox").text == "from the sandbox"
    assert httpx.get(f"{sandbox.server_url}/api/v1/sessions").status_code == 401
    assert not sandbox.is_removed


@pytest.mark.parametrize("name", NAMES)
def test_a_sandbox_whose_server_never_answers_is_removed(play: Play, place: tuple[str, Sandbox], name: str) -> None:
    place[1].is_broken = True
    done = play(name, OSTLER_TOKEN="secret", OSTLER_WAIT_SECONDS="1")
    assert (done.returncode, place[1].is_removed) == (1, True)
    assert "No server answers at http" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_without_a_token_nothing_is_begun(play: Play, place: tuple[str, Sandbox], name: str) -> None:
    done = play(name)
    assert (done.returncode, place[1].asked) == (2, [])
    assert "Set OSTLER_TOKEN" in done.stderr
