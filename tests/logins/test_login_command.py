"""`ostler agents login` leads a person through it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.guest import guest_server
from tests.support.serving import OSTLER, RunningServer, clean_env


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with guest_server(tmp_path_factory.mktemp("command")) as running:
        yield running


def ostler(server: RunningServer, home: Path, *words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    env = clean_env(home, {"OSTLER_ENDPOINT": server.url})
    command = [*OSTLER, "agents", *words]
    return subprocess.run(command, env=env, input=given, capture_output=True, text=True, check=False, timeout=120)


def test_a_login_by_the_agents_own_command(server: RunningServer, tmp_path: Path) -> None:
    env = clean_env(tmp_path, {"OSTLER_ENDPOINT": server.url})
    command = [*OSTLER, "agents", "login", "guest"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        shown = [process.stderr.readline() for _ in range(5)]
        output, rest = process.communicate("1234\n", timeout=120)
    assert "https://login.example/start?token=" in shown[2]
    assert shown[4] == "and enter the code GUEST-7777\n"
    assert (process.returncode, "ready" in output) == (0, True), rest
    assert ostler(server, tmp_path, "logout", "guest").stdout == "Logged out guest.\n"


def test_a_wrong_code_is_one_line(server: RunningServer, tmp_path: Path) -> None:
    done = ostler(server, tmp_path, "login", "guest", given="4321\n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Error: Login failed: wrong code?token=[hidden]"


def test_a_key_comes_on_standard_input(server: RunningServer, tmp_path: Path) -> None:
    done = ostler(server, tmp_path, "login", "guest", "--key", "-", given="sk-private\n")
    assert (done.returncode, "sk-private" in done.stdout + done.stderr) == (0, False)
    assert "key" in done.stdout.split("by ")[1].split()[0]
    assert "unknown" in ostler(server, tmp_path, "login", "guest", "--status").stdout
    assert "needs login" in ostler(server, tmp_path, "login", "guest", "--logout").stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("login", "guest", "--key", "sk-open"), "--key -"),
        (("login", "guest", "--key", "-"), "No key came"),
        (("login", "guest", "--machine", "--status"), "one of"),
        (("login", "mock"), "no login of its own"),
        (("login-answer", "guest", "1"), "Start one first"),
        (("login-state", "nobody"), "nobody"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    server: RunningServer, tmp_path: Path, words: tuple[str, ...], hint: str
) -> None:
    done = ostler(server, tmp_path, *words)
    assert done.returncode != 0
    assert (hint in done.stderr, len(done.stderr.splitlines())) == (True, 1), done.stderr
