"""Conversations at a real (pseudo) terminal."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.client import Client
from tests.cli.reading import Reader
from tests.serving import OSTLER, RunningServer


class Terminal(Reader):
    """The other side of a child's terminal."""

    def __init__(self, descriptor: int, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(descriptor)
        self._keyboard = descriptor
        self.process = process

    def type(self, line: str) -> None:
        """Type a line and Enter."""
        os.write(self._keyboard, line.encode() + b"\n")

    def end(self) -> int:
        """Read on until the child ends; gives its exit code."""
        self.rest()
        return self.process.wait(60)


@contextmanager
def terminal(env: dict[str, str], *arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*OSTLER, *arguments],
        env={**env, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_permission_is_allowed_with_one_letter(server: RunningServer, env: dict[str, str]) -> None:
    with terminal(env, "run", "mock", "mock: permission dig a hole\nmock: say dug") as person:
        person.expect("May I? dig a hole")
        person.expect("[o]nce, [a]lways or [r]eject? ")
        person.type("what")
        person.expect("[o]nce, [a]lways or [r]eject? ")
        person.type("o")
        person.expect("allowed once")
        person.expect("dug")
        assert person.end() == 0


def test_a_rejection_carries_its_reason_to_the_agent(server: RunningServer, env: dict[str, str]) -> None:
    with terminal(env, "run", "mock", "mock: permission dig a hole") as person:
        person.expect("[r]eject? ")
        person.type("r")
        person.expect("Reason (Enter for none): ")
        person.type("the lawn is new")
        person.expect("rejected: the lawn is new")
        person.expect("(the lawn is new)")
        assert person.end() == 0


def test_questions_are_answered_by_number_or_name(server: RunningServer, env: dict[str, str]) -> None:
    prompt = "mock: questions Which size? | S | M ;; *Which extras? | milk | sugar"
    with terminal(env, "run", "mock", prompt) as person:
        person.expect("1. milk")
        person.expect("to question 1 (a number")
        person.type("M")
        person.expect("to question 2 (numbers with commas")
        person.type("1, 2")
        person.expect("M; milk, sugar")
        assert person.end() == 0


def test_an_ask_answered_elsewhere_needs_no_answer_here(server: RunningServer, env: dict[str, str]) -> None:
    with (
        terminal(env, "run", "mock", "mock: permission dig", "--key", "elsewhere") as person,
        Client(server.url) as client,
    ):
        person.expect("[r]eject? ")
        (ask,) = client.asks.list(session="elsewhere").items
        client.asks.permission("elsewhere", ask.ask_id, "always")
        person.expect("always allowed")
        assert person.end() == 0


def test_attach_takes_messages_and_control_d_leaves(server: RunningServer, env: dict[str, str]) -> None:
    with Client(server.url) as client:
        client.sessions.create("mock", key="talk")
        with terminal(env, "attach", "talk") as person:
            person.type("mock: permission dig")
            person.expect("[r]eject? ")
            person.type("a")
            person.expect("completed")
            person.type("mock: say hello back")
            person.expect("> mock: say hello back")
            person.expect("hello back")
            person.expect("completed")
            person.type("\x04")
            person.expect("Come back with `ostler attach talk`")
            assert person.end() == 0
        assert client.sessions.get("talk").turn_count == 2


def test_control_c_in_an_attached_terminal_interrupts_and_then_leaves(
    server: RunningServer, env: dict[str, str]
) -> None:
    with Client(server.url) as client:
        client.sessions.create("mock", key="calm").send("mock: say working\nmock: wait 60")
        with terminal(env, "attach", "calm") as person:
            person.expect("working")
            person.process.send_signal(signal.SIGINT)
            person.expect("Interrupting")
            person.expect("interrupted")
            person.process.send_signal(signal.SIGINT)
            person.expect("Left; the session goes on.")
            assert person.end() == 0
        assert client.sessions.get("calm").status == "running"


def test_while_nothing_is_said_a_line_with_a_clock_says_what_happens(
    server: RunningServer, env: dict[str, str]
) -> None:
    with terminal(env, "run", "mock", "mock: wait 4\nmock: say Ready.") as person:
        person.expect("mock is working 0:0")
        assert "working" not in person.expect("Ready.").rpartition("\x1b[K")[2]
        assert person.end() == 0
