"""`ostler run` against a running server."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ostler.client import Client
from tests.cli.conftest import Ostler
from tests.cli.reading import Reader
from tests.support.serving import OSTLER, RunningServer


class Child(Reader):
    """A running `ostler` without a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        super().__init__(process.stdout.fileno())
        self.process = process

    def press_control_c(self) -> None:
        """What a terminal sends for Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Wait for the exit code."""
        return self.process.wait(60)


@contextmanager
def started(env: dict[str, str], *arguments: str) -> Iterator[Child]:
    process = subprocess.Popen(
        [*OSTLER, *arguments], env=env, cwd=env["HOME"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        yield Child(process)
    finally:
        process.kill()
        process.communicate()


def test_a_turn_that_a_limit_ended_is_left_to_go_on_by_itself(ostler: Ostler, server: RunningServer) -> None:
    done = ostler("run", "mock", "mock: limit 3600", "--label", "test=limited")
    assert done.returncode == 1
    assert "The agent is limited until 20" in done.stderr
    assert "goes on by itself then" in done.stderr
    with Client(server.url) as client:
        (kept,) = client.sessions.list(labels={"test": "limited"}).items
    assert (kept.status, kept.waits_for_limit) == ("running", True)
    stopped = ostler("run", "mock", "mock: limit 3600", "--stop")
    assert "limited until 20" in stopped.stderr
    assert "by itself" not in stopped.stderr


def test_a_greeting_is_answered_and_the_session_is_stopped(ostler: Ostler) -> None:
    done = ostler("run", "mock", "hello", "--label", "test=greeting")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"hello"' in done.stdout
    assert done.stdout.splitlines()[-1].startswith("✓ completed")
    assert (
        json.loads(ostler("sessions", "list", "--label", "test=greeting", "--json").stdout)["items"][0]["status"]
        == "stopped"
    )


def test_what_the_agent_does_is_shown_as_short_lines(ostler: Ostler) -> None:
    done = ostler(
        "run",
        "mock",
        "mock: run printf 'a\\nb\\n'\nmock: fail-tool search {\"q\": 1} -> no net\nmock: write x.txt hi\nmock: say bye",
    )
    assert done.stdout.splitlines()[:-1] == [
        "● shell printf 'a\\nb\\n'",
        "  │ a",
        "  │ b",
        "  ✓ done",
        "● search 1",
        "  ✗ no net",
        "● write path=x.txt content=hi",
        "  ± x.txt created +1 -0",
        "  ✓ Wrote 2 bytes to x.txt.",
        "bye",
    ]


def test_the_prompt_may_come_from_standard_input(ostler: Ostler) -> None:
    assert ostler("run", "mock", "-", stdin="mock: say from a pipe").stdout.splitlines()[0] == "from a pipe"


def test_json_prints_every_event_of_the_turn_once_and_in_order(ostler: Ostler) -> None:
    done = ostler("run", "mock", "mock: stream 300 words max", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    numbers = [event["sequence"] for event in events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert (events[-1]["type"], events[-1]["data"]["outcome"]) == ("turn.ended", "completed")


def test_options_reach_the_agent(ostler: Ostler, tmp_path: Path) -> None:
    done = ostler("run", "mock", "mock: env COLOUR\nmock: pwd", "--env", "COLOUR=blue", "--cwd", ".")
    assert "blue" in done.stdout
    assert str(tmp_path) in done.stdout


def test_it_works_where_one_stands_with_the_agent_that_one_uses(ostler: Ostler, tmp_path: Path) -> None:
    here = ostler("run", "mock: pwd", OSTLER_AGENT="mock")
    assert here.stdout.splitlines()[0] == str(tmp_path)
    empty = ostler("run", "mock: pwd", "--empty")  # the last one that was used
    assert empty.returncode == 0
    assert str(tmp_path) != empty.stdout.splitlines()[0]
    assert ostler("run", "one", "two", "three").stderr == (
        "Error: A prompt of several words needs quotes. Try `ostler run --help`.\n"
    )


def test_a_folder_that_the_server_may_not_use_names_both_ways_out(env: dict[str, str]) -> None:
    done = subprocess.run(
        [*OSTLER, "run", "mock", "hello"], env=env, cwd="/", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("--repository-folder /"), done.stderr.count("--empty")) == (1, 1, 1)


def test_a_key_keeps_the_session_and_continues_it(ostler: Ostler) -> None:
    first = ostler("run", "mock", "mock: say one", "--key", "again")
    second = ostler("run", "mock", "mock: say two", "--key", "again", "--stop")
    assert first.stderr == "Go on with `ostler attach again`.\n"
    assert (second.stdout.splitlines()[0], second.stderr) == ("two", "")
    assert json.loads(ostler("sessions", "get", "again", "--json").stdout)["turnCount"] == 2


@pytest.mark.parametrize("prompt", ["mock: error The model is overloaded", "mock: crash 3"])
def test_a_failed_turn_is_exit_code_1(ostler: Ostler, prompt: str) -> None:
    done = ostler("run", "mock", prompt)
    assert (done.returncode, done.stdout.splitlines()[-1].startswith("✗ failed")) == (1, True)


@pytest.mark.parametrize(
    ("flags", "shown"),
    [(("--yes",), "  allowed once"), (("--on-ask", "reject"), "  rejected: Nobody is here to allow it.")],
)
def test_permissions_can_be_decided_in_advance(ostler: Ostler, flags: tuple[str, ...], shown: str) -> None:
    done = ostler("run", "mock", "mock: permission dig a hole", *flags)
    assert done.stdout.splitlines()[:2] == ["? May I? dig a hole", shown]


def test_questions_can_be_declined_in_advance(ostler: Ostler) -> None:
    done = ostler("run", "mock", "mock: question Tea or coffee? | tea | coffee", "--on-ask", "reject")
    assert done.stdout.splitlines()[:4] == ["? Tea or coffee?", "  1. tea", "  2. coffee", "  declined"]


def test_without_a_terminal_it_says_how_to_answer_and_waits(
    env: dict[str, str], server: RunningServer, ostler: Ostler
) -> None:
    with started(env, "run", "mock", "mock: permission dig", "--key", "waits") as child:
        child.expect("Waiting. Answer with `ostler ")
        command = child.expect("`").rstrip("`").replace("|always|reject", "").split()
        assert ostler(*command).returncode == 0
        child.expect("  allowed once\n")
        assert child.end() == 0


def test_control_c_interrupts_the_turn(env: dict[str, str]) -> None:
    with started(env, "run", "mock", "mock: say ready\nmock: wait 60") as child:
        child.expect("ready")
        child.press_control_c()
        child.expect("Interrupting; press Ctrl-C again to leave.\n")
        child.expect("✗ interrupted")
        assert child.end() == 130


def test_a_second_control_c_leaves_a_stuck_agent(env: dict[str, str], server: RunningServer) -> None:
    with started(env, "run", "mock", "mock: hang stuck", "--key", "stuck") as child:
        child.expect("stuck")
        child.press_control_c()
        child.expect("Interrupting")
        child.press_control_c()
        assert child.end() == 130
    with Client(server.url) as client:
        assert client.sessions.cancel("stuck").status == "cancelled"


def test_attach_replays_and_follows_until_the_session_ends(env: dict[str, str], server: RunningServer) -> None:
    with Client(server.url) as client:
        session = client.sessions.create("mock", key="attached")
        session.send("mock: say first")
        with started(env, "attach", "attached") as child:
            child.expect("✓ completed")
            session.send("mock: say second")
            child.expect("second\n")
            child.expect("✓ completed")
            session.stop()
            assert child.end() == 0


def test_instructions_come_from_an_option_or_a_file(ostler: Ostler, tmp_path: Path) -> None:
    (tmp_path / "rules.md").write_text("Be kind.\n")
    given = [("--instructions", "Be brief."), ("--instructions-file", "rules.md")]
    answers = [ostler("run", "mock", "mock: instructions", *each).stdout.splitlines()[0] for each in given]
    assert answers == ["Be brief.", "Be kind."]


@pytest.mark.parametrize(
    ("options", "code", "why"),
    [
        (("--instructions", "a", "--instructions-file", "rules.md"), 2, "exclude each other"),
        (("--instructions-file", "nowhere.md"), 2, "nowhere.md"),
        (("--instructions-file", "latin.md"), 2, "latin.md"),
        (("--instructions", "x" * 65537), 1, "instructions must not be longer than 65536 bytes, not 65537"),
    ],
)
def test_instructions_that_cannot_be_are_explained(
    ostler: Ostler, tmp_path: Path, options: tuple[str, ...], code: int, why: str
) -> None:
    (tmp_path / "rules.md").write_text("Be kind.\n")
    (tmp_path / "latin.md").write_bytes("grüezi".encode("latin-1"))
    done = ostler("run", "mock", "hi", *options)
    assert (done.returncode, why in done.stderr, "Traceback" in done.stderr) == (code, True, False)


def test_a_folder_that_the_server_does_not_allow_is_refused_with_the_next_step(ostler: Ostler) -> None:
    done = ostler("run", "mock", "mock: say hi", "--cwd", "/etc")
    assert done.returncode == 1
    assert "`--repository-folder /etc`" in done.stderr


def test_yes_allows_nothing_but_reading_in_plan_mode(ostler: Ostler) -> None:
    script = "mock: permission delete everything\nmock: say over"
    done = ostler("run", "mock", script, "--permission-mode", "plan", "--yes")
    assert done.stdout.count("  rejected: The session's permission mode is plan") == 1
    assert "already" not in done.stdout + done.stderr
