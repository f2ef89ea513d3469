"""Conversations at a real (pseudo) terminal."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ostler.cli.terminal.text import item_text
from ostler.client import Client
from ostler.wire.sessions import Session
from tests.cli.conftest import Ostler
from tests.cli.reading import Reader
from tests.support.serving import OSTLER, RunningServer


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
def terminal(env: dict[str, str], *arguments: str, folder: Path | None = None) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*OSTLER, *arguments],
        env={**env, "TERM": "xterm"},
        cwd=folder or env["HOME"],
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
        person.expect("'what' is none of the choices. [o]nce, [a]lways or [r]eject? ")
        person.type("o")
        person.expect("allowed once")
        person.expect("dug")
        assert person.end() == 0


def test_a_conversation_has_commands_of_its_own_and_leaves_the_others_to_the_agent(
    server: RunningServer, env: dict[str, str]
) -> None:
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="mock", key="stable-work", title="Tidy the stable")
        ostler.sessions.create(agent="mock", key="other", title="Tidy the barn")
    with terminal(env, "attach", "stable-w", "--live") as person:
        person.expect("> ")
        person.type("/help")
        person.expect("what changed since the session began")
        person.type("/model mock-large")
        person.expect("from the next turn on")
        person.type("/model")
        person.expect("mock-large")
        person.type("//help")
        person.expect("/help")
        person.type("/quit")
        person.expect("the session goes on")
        assert person.end() == 0
    with Client(server.url) as ostler:
        sent = [each.item for each in ostler.sessions.messages(session.id).messages if each.item.role == "user"]
    assert [item_text(item) for item in sent] == ["/help"]


def test_attach_takes_a_part_of_a_title_that_one_session_has(server: RunningServer, env: dict[str, str]) -> None:
    with Client(server.url) as ostler:
        ostler.sessions.create(agent="mock", key="wall", title="Whitewash the wall")
        ostler.sessions.create(agent="mock", key="fence", title="Whitewash the fence")
    with terminal(env, "attach", "white") as person:
        person.expect("may be several sessions")
        assert person.end() == 1
    with terminal(env, "attach", "the FENCE", "--live") as person:
        person.expect("> ")
        person.type("/quit")
        person.expect("ostler attach fence")
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


def sessions_in(client: Client, folder: Path) -> list[Session]:
    return [each for each in client.sessions.list(per_page=100).items if each.cwd == str(folder)]


def test_ostler_alone_talks_in_the_folder_it_stands_in_and_goes_on_there_later(
    server: RunningServer, env: dict[str, str], tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    with Client(server.url) as client, terminal(env, "--agent", "mock", folder=shop) as person:
        person.expect("mock in")
        person.expect("> ")
        assert sessions_in(client, shop) == []  # who leaves now leaves nothing behind
        person.type("mock: pwd")
        person.expect(str(shop))
        person.expect("completed")
        person.expect("> ")
        person.type("mock: say and more")
        person.expect("and more")
        person.expect("completed")
        os.kill(person.process.pid, signal.SIGINT)
        assert person.end() == 0
        (made,) = sessions_in(client, shop)
    with terminal(env, folder=shop) as person, Client(server.url) as client:
        person.expect("Going on with")
        person.expect("and more")
        person.expect("> ")
        person.type("mock: say once again")
        person.expect("completed")
        os.kill(person.process.pid, signal.SIGINT)
        person.end()
        (same,) = sessions_in(client, shop)
        assert (same.id, same.turn_count) == (made.id, 3)
    with terminal(env, "--new", folder=shop) as person, Client(server.url) as client:
        person.expect("mock in")  # the agent that was used last
        person.type("mock: say another")
        person.expect("completed")
        assert len(sessions_in(client, shop)) == 2


def test_what_is_typed_stands_on_the_screen_once(server: RunningServer, env: dict[str, str]) -> None:
    with Client(server.url) as client:
        session = client.sessions.create("mock")
    with terminal(env, "attach", session.id) as person:
        person.expect("> ")
        person.type("mock: say good morning")
        shown = person.expect("completed")
        assert shown.count("mock: say good morning") == 1


def test_without_a_terminal_ostler_alone_prints_its_help(ostler: Ostler) -> None:
    done = ostler()
    assert (done.returncode, done.stdout) == (2, "")
    assert "Server:\n  serve" in done.stderr


def test_words_are_completed_by_what_the_server_has(ostler: Ostler, server: RunningServer) -> None:
    def offered(*words: str) -> set[str]:
        line = " ".join(words)
        done = ostler(COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), _OSTLER_COMPLETE="bash_complete")
        return {each.removeprefix("plain,") for each in done.stdout.splitlines()}

    with Client(server.url) as client:
        client.sessions.create("mock", key="completed-one")
    assert "completed-one" in offered("ostler", "attach", "completed-")
    assert offered("ostler", "run", "moc") == {"mock"}
    assert offered("ostler", "sessions", "create", "mock", "--model", "") == {"mock-small", "mock-large"}
    nowhere = {"OSTLER_ENDPOINT": "http://127.0.0.1:9"}
    done = ostler(COMP_WORDS="ostler attach x", COMP_CWORD="2", _OSTLER_COMPLETE="bash_complete", **nowhere)
    assert (done.stdout.strip(), done.stderr) == ("", "")
