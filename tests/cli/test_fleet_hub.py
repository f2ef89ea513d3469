"""A leader hosts the proxy of its session itself: peers register at it, and it reaches them, without any server."""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import httpx
import pytest

from tests.cli.test_fleet_commands import follower
from tests.support.forking import OSTLER, ran
from tests.support.nginx import free_port
from tests.support.patience import stretched, wait_until
from tests.support.serving import RunningServer, clean_env
from tests.support.sshd import sshd
from tests.support.talk import Talk

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


@contextmanager
def hosted(env: dict[str, str], log: Path, session: str, *options: str) -> Iterator[dict[str, str]]:
    """The environment of those who know a hub of a session."""
    with started(env, log, "connect", "serve", session, *options):
        wait_until(lambda: "OSTLER_HUB_TOKEN=" in log.read_text(), "the hub listens")
        said = log.read_text()
        url = said.split("register at ")[1].split(",")[0]
        token = said.split("OSTLER_HUB_TOKEN=")[1].split()[0]
        yield {**env, "OSTLER_HUB": url, "OSTLER_HUB_TOKEN": token}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of those who know a hub of session `mine`."""
    env = clean_env(tmp_path / "home", {"PYTHONUNBUFFERED": "1", "OSTLER_ENDPOINT": "http://127.0.0.1:9"})
    options = ["--idle-seconds", "1", "--max-bytes", "1000000"]
    with hosted(env, tmp_path / "hub.log", "mine", *options) as known:
        yield known


def names_at(hub: dict[str, str], session: str) -> list[str]:
    """What can be reached by a hub."""
    headers = {"authorization": f"Bearer {hub['OSTLER_HUB_TOKEN']}"}
    answer = httpx.get(f"{hub['OSTLER_HUB']}{SOCKS}", params={"sessionId": session}, headers=headers)
    found: list[str] = answer.json()["names"]
    return found


def test_a_leader_reaches_what_peers_registered_at_its_own_hub(hub: dict[str, str], echo: int, tmp_path: Path) -> None:
    words = ["connect", "register", "mine", "--name", "lin-01", "--target", f"echo=127.0.0.1:{echo}"]

    def dialled(name: str, **more: str) -> "subprocess.CompletedProcess[str]":
        dial = ["connect", "dial", "--session", more.pop("session", "mine"), name]
        return ran(dial, env={**hub, **more}, cwd=tmp_path, stdin="tea", seconds=stretched(60))

    def dialled_with(sent: str) -> int:
        dial = ["connect", "dial", "--session", "mine", names[0]]
        return len(ran(dial, env=hub, cwd=tmp_path, stdin=sent, seconds=stretched(60)).stdout)

    with started(hub, tmp_path / "peer.log", *words), httpx.Client(base_url=hub["OSTLER_HUB"]) as api:
        api.headers["authorization"] = f"Bearer {hub['OSTLER_HUB_TOKEN']}"
        names = [f"lin-01:{echo}"]
        wait_until(lambda: names_at(hub, "mine") == names, "it is registered")
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
        assert dialled_with("x" * 400_000) == 400_000
        assert dialled_with("x" * 900_000) < 900_000  # there and back it is too much


def test_a_name_stays_with_the_peer_that_has_it_and_another_one_is_told(
    hub: dict[str, str], echo: int, tmp_path: Path
) -> None:
    words = ["connect", "register", "mine", "--name", "lin-01", "--target"]
    with started(hub, tmp_path / "older.log", *words, f"echo=127.0.0.1:{echo}"):
        wait_until(lambda: names_at(hub, "mine") == [f"lin-01:{echo}"], "the older one is registered")
        newer = subprocess.Popen([*OSTLER, *words, "old=127.0.0.1:9"], env=hub, stderr=subprocess.PIPE, text=True)
        with newer:
            _, told = newer.communicate(timeout=stretched(60))
        assert (newer.returncode, "has the name 'lin-01'" in told) == (1, True), told
        assert names_at(hub, "mine") == [f"lin-01:{echo}"]


def test_a_fence_goes_by_the_hub_of_a_leader_and_orders_by_a_server_without_a_proxy(
    server: RunningServer, env: dict[str, str], tmp_path: Path
) -> None:
    tree, copy = tmp_path / "work", tmp_path / "copy"
    for folder in (tree, copy):
        folder.mkdir()
    (tree / "file").write_text("of the leader")
    env = {**env, "OSTLER_HUB_TOKEN": "hub-token"}
    places = ["--port", str(free_port()), "--socks-port", str(free_port())]
    with ExitStack() as stack:
        api = stack.enter_context(httpx.Client(base_url=f"{server.url}/api/v1", timeout=60))
        session = Talk(api).id
        port, key = stack.enter_context(sshd(tmp_path / "sshd"))

        def leader(known: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
            return ran(["agent", *words], env=known, cwd=tree, stdin="", seconds=stretched(120))

        fence = ["sync-fence", session, "--ssh-option", f"IdentityFile {key}"]
        with hosted(env, tmp_path / "hub.log", session, *places) as known:
            options = ["--target", f"ssh=127.0.0.1:{port}", "--hub", known["OSTLER_HUB"]]
            stack.enter_context(follower(env, session, "lin-01", copy, tmp_path / "1.log", *options))
            wait_until(lambda: names_at(known, session) == [f"lin-01:{port}"], "it is registered")
            (copy / "old").write_text("rsync takes it away, the relay does not")
            done = leader(env, *fence, "--hub", known["OSTLER_HUB"])
            assert done.returncode == 0, done.stdout + done.stderr
            assert sorted(each.name for each in copy.iterdir()) == [".ostler-follower", "file"]
            everywhere = leader(known, "run-everywhere", session, "--", "cat", "file")
            assert "[lin-01] of the leader" in everywhere.stdout
            dial = f"{shlex.join(OSTLER)} connect dial --session {session} %h:%p"
            options = ["-F", "none", "-i", str(key), "-o", "StrictHostKeyChecking=no", "-o", f"ProxyCommand={dial}"]
            options += ["-o", f"UserKnownHostsFile={tmp_path / 'known'}"]
            ssh = subprocess.run(
                ["ssh", *options, "-p", str(port), "lin-01", "cat", str(copy / "file")],
                env=known,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ssh.stdout == "of the leader", ssh.stderr
        away = leader(known, *fence)
        assert (away.returncode, f"No hub answers at {known['OSTLER_HUB']}" in away.stderr) == (1, True), (
            away.stdout + away.stderr
        )
        (tree / "file").write_text("changed")
        with hosted(env, tmp_path / "again.log", session, *places) as known:
            wait_until(lambda: names_at(known, session) == [f"lin-01:{port}"], "it is registered again")
            assert leader(known, *fence).returncode == 0
        assert (copy / "file").read_text() == "changed"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"OSTLER_HUB_TOKEN": "wrong"}, "This hub needs its token"),
        ({}, "This hub is for session 'mine', not"),
        ({"OSTLER_HUB_TOKEN": ""}, "OSTLER_HUB_TOKEN is not set"),
    ],
)
def test_a_follower_that_a_hub_refuses_says_why_and_ends(
    hub: dict[str, str], server: RunningServer, tmp_path: Path, more: dict[str, str], why: str
) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        words = ["follower", Talk(api).id, "--name", "lin-01", "--folder", str(tmp_path), "--target", "it=127.0.0.1:9"]
        env = {**hub, "OSTLER_ENDPOINT": server.url, **more}
        found = ran(words, env=env, cwd=tmp_path, stdin="", seconds=stretched(60))
    assert (found.returncode != 0, why in found.stderr) == (True, True), found.stderr
