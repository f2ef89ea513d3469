"""A leader hosts the proxy of its session itself: peers register at it, and it reaches them, without any server."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import httpx
import pytest

from tests.support.forking import OSTLER, ran
from tests.support.patience import stretched, wait_until
from tests.support.serving import clean_env

SOCKS = "/api/v1/connect/socks"


class _Echo(BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


@pytest.fixture(scope="module")
def echo() -> Iterator[int]:
    """The port of a service that says everything again."""
    with ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def started(env: dict[str, str], log: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that goes on until it is ended."""
    with log.open("wb") as out:
        process = subprocess.Popen([*OSTLER, *words], env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0, log.read_text()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of those who know a hub of session `mine`."""
    env = clean_env(tmp_path / "home", {"PYTHONUNBUFFERED": "1", "OSTLER_ENDPOINT": "http://127.0.0.1:9"})
    log = tmp_path / "hub.log"
    with started(env, log, "connect", "serve", "mine", "--idle-seconds", "1"):
        wait_until(lambda: "OSTLER_HUB_TOKEN=" in log.read_text(), "the hub listens")
        said = log.read_text()
        url = said.split("register at ")[1].split(",")[0]
        token = said.split("OSTLER_HUB_TOKEN=")[1].split()[0]
        yield {**env, "OSTLER_HUB": url, "OSTLER_HUB_TOKEN": token}


def test_a_leader_reaches_what_peers_registered_at_its_own_hub(hub: dict[str, str], echo: int, tmp_path: Path) -> None:
    words = ["connect", "register", "mine", "--name", "lin-01", "--target", f"echo=127.0.0.1:{echo}"]

    def dialled(name: str, **more: str) -> "subprocess.CompletedProcess[str]":
        dial = ["connect", "dial", "--session", more.pop("session", "mine"), name]
        return ran(dial, env={**hub, **more}, cwd=tmp_path, stdin="tea", seconds=stretched(60))

    with started(hub, tmp_path / "peer.log", *words), httpx.Client(base_url=hub["OSTLER_HUB"]) as api:
        api.headers["authorization"] = f"Bearer {hub['OSTLER_HUB_TOKEN']}"
        names = [f"lin-01:{echo}"]
        wait_until(lambda: api.get(SOCKS, params={"sessionId": "mine"}).json()["names"] == names, "it is registered")
        found = dialled(names[0])
        assert (found.returncode, found.stdout) == (0, "tea"), found.stderr
        assert "it is no address that this follower registered" in dialled("lin-01:22").stderr
        assert "no such follower is there now" in dialled("lin-02:22").stderr
        assert "for session 'mine', not 'other'" in dialled(names[0], session="other").stderr
        assert "This hub needs its token" in dialled(names[0], OSTLER_HUB_TOKEN="wrong").stderr
        assert api.get("/api/v1/sessions", params={"sessionId": "mine"}).status_code == 404
        quiet = subprocess.Popen(
            [*OSTLER, "connect", "dial", "--session", "mine", names[0]], env=hub, stdin=subprocess.PIPE
        )
        with quiet:  # it says nothing for a second
            assert quiet.wait(stretched(60)) == 0
