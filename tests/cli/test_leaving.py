"""Ctrl-C at the terminal of a server says what it ends, and what a command does when nobody reads its output."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ostler.client import Client
from tests.cli.reading import Reader
from tests.cli.test_terminal import Terminal, terminal
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server


@contextmanager
def served(tmp_path: Path) -> Iterator[tuple[Terminal, str]]:
    arguments = ("serve", "--port", "0", "--state-dir", str(tmp_path / "state"))
    with terminal(clean_env(tmp_path / "home"), *arguments) as person:
        line = person.expect("Stop with Ctrl-C.")
        address = re.search(r"http://\S+", line)
        assert address is not None
        yield person, address[0]


def at_work(client: Client) -> str:
    session = client.sessions.create("mock", key="stable", title="Muck out")
    session.start("mock: wait 600")
    return session.id


def test_ctrl_c_names_the_agents_at_work_and_a_second_one_ends_them(tmp_path: Path) -> None:
    with served(tmp_path) as (person, address), Client(address) as client:
        at_work(client)
        person.process.send_signal(signal.SIGINT)
        assert "1 agent at work: mock (Muck out)." in person.expect(f"kill {person.process.pid}")
        assert client.sessions.get("stable").activity == "working"
        person.process.send_signal(signal.SIGINT)
        person.expect("Stopping them and the server.")
        assert person.end() == 0


def test_a_session_that_was_not_named_is_named_before_it_is_ended(tmp_path: Path) -> None:
    with served(tmp_path) as (person, address), Client(address) as client:
        at_work(client)
        person.process.send_signal(signal.SIGINT)
        person.expect("Ctrl-C again ends them.")
        client.sessions.create("mock", title="Feed").start("mock: wait 600")
        person.process.send_signal(signal.SIGINT)
        assert "2 agents at work: mock (Feed), mock (Muck out)." in person.expect("Ctrl-C again ends them.")
        person.process.send_signal(signal.SIGINT)
        assert person.end() == 0


@pytest.mark.parametrize("words", [("events", "stream", "stable"), ("attach", "stable")])
def test_who_waits_for_a_killed_server_is_told_so_and_that_it_is_back(tmp_path: Path, words: tuple[str, ...]) -> None:
    env = clean_env(tmp_path / "home")
    with running_server(tmp_path / "state") as server, Client(server.url) as client:
        client.sessions.create("mock", key="stable").run("mock: say Fed.")
        command = (*OSTLER, "--endpoint", server.url, *words)
        with subprocess.Popen(command, env=env, stdout=-1, stderr=-1, stdin=subprocess.DEVNULL) as watching:
            assert watching.stdout is not None
            assert watching.stderr is not None
            Reader(watching.stdout.fileno()).expect("Fed.")
            told = Reader(watching.stderr.fileno())
            server.process.kill()
            said = told.expect("Ctrl-C leaves.")
            assert said.startswith(f"No Ostler server answers at {server.url}. Start one with `ostler serve`.")
            with running_server(tmp_path / "state", "--port", str(server.port)):
                told.expect("The server answers again.")
                watching.send_signal(signal.SIGINT)
                watching.wait(60)


def test_ctrl_c_with_nobody_at_work_stops_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as (person, address), Client(address) as client:
        assert client.sessions.create("mock").run("mock: say Hello").text == "Hello"
        person.process.send_signal(signal.SIGINT)
        person.expect("\nStopping.\n")
        assert person.end() == 0


@pytest.mark.parametrize("words", [("sessions",), ("agents",), ("asks",), ("system",)], ids=" ".join)
def test_a_group_without_a_verb_shows_its_help(words: tuple[str, ...], tmp_path: Path) -> None:
    with terminal(clean_env(tmp_path), *words) as person:
        shown = person.rest()
        assert (person.process.wait(60), shown.splitlines()[0]) == (
            2,
            f"Usage: {' '.join(['ostler', *words])} [OPTIONS] COMMAND [ARGS]...",
        )
        assert "\nCommands:\n" in shown


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("sesions", "list"), "Did you mean 'sessions'?"),
        (("sessions", "lst"), "'list'"),
    ],
    ids=["rnu", "sesions", "lst"],
)
def test_a_mistyped_command_gets_the_nearest_name(words: tuple[str, ...], hint: str, tmp_path: Path) -> None:
    with terminal(clean_env(tmp_path), *words) as person:
        assert hint in person.rest()
        assert person.process.wait(60) == 2


UNREAD = "Nobody reads the output any longer; the turn was interrupted.\n"


def read_a_little(env: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run `ostler` with a reader that leaves at once; gives the exit code and what came on stderr."""
    with subprocess.Popen(
        [*OSTLER, *arguments],
        env=env,
        cwd=env["HOME"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.read(1)
        child.stdout.close()
        code = child.wait(stretched(60))
        return code, child.stderr.read().decode()


@pytest.mark.parametrize("flags", [("--json",), ()], ids=["json", "text"])
@pytest.mark.parametrize("goes_on", ["wait 600", "permission dig", "stream 100000 words 20/s"])
def test_run_ends_the_turn_and_the_session_when_its_reader_leaves(
    env: dict[str, str], server: RunningServer, flags: tuple[str, ...], goes_on: str
) -> None:
    label = "".join((goes_on.split(maxsplit=1)[0], *flags))
    prompt = f"mock: say ready\nmock: {goes_on}"
    assert read_a_little(env, "run", "mock", prompt, "--label", f"unread={label}", *flags) == (141, UNREAD)
    with Client(server.url) as client:
        (session,) = client.sessions.list(labels={"unread": label}).items
        assert session.status == "stopped"


def test_a_session_that_is_kept_is_interrupted_and_goes_on(env: dict[str, str], server: RunningServer) -> None:
    prompt = "mock: say ready\nmock: wait 600"
    assert read_a_little(env, "run", "mock", prompt, "--key", "unread", "--json") == (
        141,
        f"{UNREAD}Go on with `ostler attach unread`.\n",
    )
    with Client(server.url) as client:
        wait_until(lambda: client.sessions.get("unread").activity == "idle", what="the turn was interrupted")
        assert client.sessions.open("unread").run("mock: say here").text == "here"


def test_attach_leaves_the_session_alone_when_its_reader_leaves(env: dict[str, str], server: RunningServer) -> None:
    with Client(server.url) as client:
        session = client.sessions.create("mock", key="watched")
        session.start("mock: wait 600")
        assert read_a_little(env, "attach", "watched", "--json") == (141, "")
        assert client.sessions.get("watched").activity == "working"
        session.stop()


@pytest.mark.parametrize("arguments", [("events", "stream", "quiet"), ("--help",)], ids=" ".join)
def test_every_command_ends_without_a_word_when_its_reader_leaves(
    env: dict[str, str], server: RunningServer, arguments: tuple[str, ...]
) -> None:
    with Client(server.url) as client:
        client.sessions.create("mock", key="quiet").start("mock: stream 100000 words 50/s")
    code, complaints = read_a_little(env, *arguments)
    assert (code in {0, 141}, complaints) == (True, "")
    with Client(server.url) as client:
        client.sessions.delete("quiet")
