"""Ctrl-C at the terminal of a server says what it ends."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ostler.client import Client
from tests.cli.test_terminal import Terminal, terminal
from tests.serving import clean_env


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
