"""The HTTP bridge as a program: a web server looks like a process with frames on its pipes."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ostler.agents.opencode import BRIDGE
from tests.support.patience import wait_until
from tests.support.serving import clean_env

WEB = (sys.executable, "-I", str(Path(__file__).with_name("web.py")))
PATIENCE = 60.0
PIPE_BYTES = 65536
MODEST_KB = 64 * 1024
LARGEST = 2**20


class Bridge:
    """A running bridge with a web server behind it."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.process = process
        self._stderr = stderr
        self._sent = 0

    def send(self, method: str, body: Any) -> None:
        """Make a request."""
        assert self.process.stdin is not None
        self._sent += 1
        request = {"id": self._sent, "method": method, "path": "/do", "body": body}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def next(self) -> Any:
        """The next frame; None at their end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def do(self, order: Any) -> Any:
        """Have the server do something; its answer, when no event comes before it."""
        self.send("POST", order)
        frame = self.next()
        assert frame["response"] == self._sent
        return frame["body"]

    def close(self) -> None:
        """Say that there are no more requests."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> int:
        """The code it ended with."""
        return self.process.wait(PATIENCE)

    def said(self) -> list[str]:
        """What it printed beside its frames."""
        return self._stderr.read_text().splitlines()


@contextmanager
def bridged(folder: Path, *arguments: str, largest: int = LARGEST, command: tuple[str, ...] = WEB) -> Iterator[Bridge]:
    argv = [sys.executable, "-I", "-S", str(BRIDGE), "/events", "me", "WEB_PASSWORD", str(largest), *command]
    env, stderr = clean_env(folder / "home"), folder / "stderr"
    pipe = subprocess.PIPE
    with (
        stderr.open("wb") as errors,
        subprocess.Popen([*argv, *arguments], env=env, cwd=folder, stdin=pipe, stdout=pipe, stderr=errors) as process,
    ):
        yield Bridge(process, stderr)


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    with bridged(tmp_path) as running:
        yield running


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def peak_memory_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def unread(bridge: Bridge) -> int:
    """Bytes that wait in the bridge's stdout."""
    assert bridge.process.stdout is not None
    answer = fcntl.ioctl(bridge.process.stdout.fileno(), termios.FIONREAD, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


# Frames


def test_requests_are_performed_in_order_and_events_come_beside_them(bridge: Bridge) -> None:
    event = {"text": "two\u2028lines\nand \u00e4"}
    bridge.send("POST", {"tell": event})
    bridge.send("POST", "nothing")
    frames = [bridge.next() for _ in range(3)]
    assert [frame for frame in frames if "response" in frame] == [
        {"response": 1, "status": 200, "body": {"did": {"tell": event}}},
        {"response": 2, "status": 200, "body": {"did": "nothing"}},
    ]
    assert {"event": event} in frames


def test_the_first_request_is_performed_when_the_event_stream_is_open(bridge: Bridge) -> None:
    assert bridge.do("who")["calls"] == ["events", "do"]


@pytest.mark.parametrize(
    ("words", "body"),
    [('{"a":\r\n[1.50]}', {"a": [1.5]}), ("plain\nwords", "plain\nwords"), ("", ""), ("[" * 100_000, "[" * 100_000)],
)
def test_an_answer_of_any_kind_is_one_frame(bridge: Bridge, words: str, body: Any) -> None:
    assert bridge.do({"answer": words}) == body


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ({"vanish": True}, "RemoteDisconnected: Remote end closed connection without response"),
        ({"promise": 10, "keep": "1234"}, "The answer was cut off 6 bytes before its end."),
        ({"answer": "x" * (LARGEST + 1)}, "The answer has more than 1048576 bytes."),
    ],
)
def test_a_request_without_an_answer_has_status_0_and_the_reason(bridge: Bridge, order: Any, reason: str) -> None:
    bridge.send("POST", order)
    assert bridge.next() == {"response": 1, "status": 0, "body": reason}
    assert bridge.do("next") == {"did": "next"}


def test_an_event_that_is_too_long_is_named_instead_of_kept(tmp_path: Path) -> None:
    with bridged(tmp_path, largest=2000) as bridge:
        bridge.send("POST", {"flood": 1, "size": 10_000})
        bridge.send("POST", {"tell": "next"})
        frames = [bridge.next() for _ in range(4)]
        line = 'data: {"number": 0, "filler": "%s"}\n' % ("x" * 10_000)
        assert [frame["event"] for frame in frames if "event" in frame] == [
            {"type": "overlong", "size": len(line)},
            "next",
        ]


def test_nothing_is_lost_and_little_is_kept_when_nobody_reads_for_a_while(bridge: Bridge) -> None:
    bridge.send("POST", {"flood": 2000, "size": 50_000})
    wait_until(lambda: unread(bridge) > PIPE_BYTES / 2, what="a pipe without room for another event")
    frames = [bridge.next() for _ in range(2001)]
    assert [frame["event"]["number"] for frame in frames if "event" in frame] == list(range(2000))
    assert peak_memory_kb(bridge.process.pid) < MODEST_KB


def test_a_frozen_server_answers_when_it_goes_on(bridge: Bridge) -> None:
    pid = bridge.do("who")["pid"]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", what="a frozen server")
    bridge.send("POST", "two")
    os.kill(pid, signal.SIGCONT)
    assert bridge.next()["body"] == {"did": "two"}


# Ends


def test_the_bridge_ends_with_the_code_of_its_server_after_its_last_frames(bridge: Bridge) -> None:
    bridge.send("POST", {"tell": "last words"})
    bridge.send("POST", {"die": 7})
    frames = [bridge.next() for _ in range(4)]
    assert {"event": "last words"} in frames
    assert {"response": 2, "status": 200, "body": {"did": {"die": 7}}} in frames
    assert frames[-1] is None
    assert bridge.ended() == 7
    said = "\n".join(bridge.said())  # two streams at once: a line may stand in the middle of another
    assert "warming up" in said
    assert "and that is all" in said


def test_the_bridge_ends_by_the_signal_that_killed_its_server(bridge: Bridge) -> None:
    bridge.do({"signal": signal.SIGKILL})
    assert bridge.ended() == -signal.SIGKILL


def test_a_server_that_hangs_up_is_ended(bridge: Bridge) -> None:
    pid = bridge.do("who")["pid"]
    bridge.do({"hang_up": True})
    assert bridge.ended() == -signal.SIGTERM
    assert not is_alive(pid)
    assert bridge.said()[-1] == "Its event stream ended."


def test_a_server_without_an_event_stream_is_ended_with_its_words_kept(tmp_path: Path) -> None:
    with bridged(tmp_path, "broken") as bridge:
        assert bridge.ended() == -signal.SIGTERM
        assert bridge.said()[-1] == "401 who are you?"


def test_a_translator_can_end_the_server_with_a_reason(bridge: Bridge) -> None:
    pid = bridge.do("who")["pid"]
    bridge.send("EXIT", "there is no session")
    assert bridge.ended() == -signal.SIGTERM
    assert not is_alive(pid)
    assert bridge.said()[-1] == "there is no session"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server(bridge: Bridge, number: int) -> None:
    pid = bridge.do("who")["pid"]
    bridge.process.send_signal(number)
    assert bridge.ended() == -signal.SIGTERM
    assert not is_alive(pid)


def test_a_server_that_does_not_hear_is_killed(tmp_path: Path) -> None:
    with bridged(tmp_path, "stubborn") as bridge:
        pid = bridge.do("who")["pid"]
        bridge.process.send_signal(signal.SIGTERM)
        assert bridge.ended() == -signal.SIGKILL
        assert not is_alive(pid)


def test_the_end_of_the_input_is_the_end_of_the_server(bridge: Bridge) -> None:
    pid = bridge.do("who")["pid"]
    bridge.send("POST", "last")
    bridge.close()
    assert bridge.next()["body"] == {"did": "last"}
    assert bridge.ended() == -signal.SIGTERM
    assert not is_alive(pid)


def test_the_end_of_the_input_ends_a_frozen_server_too(bridge: Bridge) -> None:
    pid = bridge.do("who")["pid"]
    os.kill(pid, signal.SIGSTOP)
    bridge.send("POST", "never heard")
    bridge.close()
    bridge.ended()
    assert not is_alive(pid)


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with bridged(tmp_path, command=("/no/such/agent",)) as bridge:
        assert bridge.ended() == 127
        assert bridge.said() == ["Cannot start /no/such/agent: No such file or directory"]


def test_each_start_has_a_password_that_is_shown_nowhere(tmp_path: Path) -> None:
    passwords, shown = [], ""
    for _ in range(2):
        with bridged(tmp_path) as bridge:
            who = bridge.do("who")
            passwords.append(who["password"])
            shown += "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in (bridge.process.pid, who["pid"]))
        shown += "".join(bridge.said())
    assert len(set(passwords)) == 2
    assert [password for password in passwords if password in shown or len(password) < 32] == []
