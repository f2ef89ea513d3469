"""Drives the real mock program through pipes and its translator, as a runner would, but step by step."""

import os
import re
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import Output, Ready, Send, TurnDone, Unreadable
from ostler.agents.mock import MockAdapter
from ostler.runner.installs.finder import Finder
from ostler.wire.events import ItemCompletedData, PermissionData, QuestionData
from ostler.wire.items import Item
from ostler.wire.parts import PromptPart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt

PATIENCE = 60.0
MARK = "MOCK_TEST_MARK"


def spec_for(home: Path, cwd: Path, **fields: Any) -> AgentSpec:
    """What a server would ask for."""
    values = {"session_id": "ses_1", "agent": "mock", "start": 1, "permission_mode": "default", **fields}
    return AgentSpec(cwd=str(cwd), home=str(home), env={}, **values)


def launch(spec: AgentSpec) -> tuple[str, ...]:
    """How the agent is started."""
    adapter = MockAdapter()
    installation = Finder((), named={}).find(adapter)
    assert installation is not None
    return adapter.prepare(spec, installation).argv


class Mock:
    """One running mock process and everything it has said."""

    def __init__(self, home: Path, cwd: Path, **fields: Any) -> None:
        spec = spec_for(home, cwd, **fields)
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            launch(spec),
            cwd=cwd,
            env={"HOME": str(home), "PATH": os.defpath, MARK: self.mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.translator = MockAdapter().translator(spec)
        self.frames: list[bytes] = []
        self.unreadable: list[Unreadable] = []
        self._partial = b""
        self._lines: list[bytes] = []

    def ready(self) -> Ready:
        """Wait until it takes prompts."""
        found = self.until(lambda output: isinstance(output, Ready))[-1]
        assert isinstance(found, Ready)
        return found

    def send(self, outputs: Sequence[Output]) -> None:
        """Write what the translator wants written."""
        assert self.process.stdin is not None
        for output in outputs:
            assert isinstance(output, Send)
            self.process.stdin.write(output.frame + b"\n")

    def prompt(self, *lines: str, parts: tuple[PromptPart, ...] = ()) -> None:
        """Begin a turn."""
        text = TextPart(text="\n".join(lines))
        self.send(self.translator.prompt(Prompt(prompt_id="pro_1", turn_id="tur_1", parts=(text, *parts))))

    def steer(self, text: str) -> None:
        """Add to the running turn."""
        prompt = Prompt(prompt_id="pro_2", turn_id="tur_1", parts=(TextPart(text=text),))
        self.send(self.translator.steer(prompt))

    def interrupt(self) -> None:
        """Ask for the end of the turn."""
        self.send(self.translator.interrupt())

    def answer(self, answer: Answer) -> None:
        """Decide an ask."""
        self.send(self.translator.answer(answer))

    def turn(self, *lines: str, parts: tuple[PromptPart, ...] = ()) -> list[Output]:
        """A whole turn that needs nobody."""
        self.prompt(*lines, parts=parts)
        return self.rest()

    def rest(self) -> list[Output]:
        """Everything until the turn is over."""
        return self.until(lambda output: isinstance(output, TurnDone))

    def until_event(self, kind: str) -> list[Draft]:
        """The events up to and with the first of this type."""
        return drafts(self.until(lambda output: isinstance(output, Draft) and output.type == kind))

    def until(self, wanted: Any) -> list[Output]:
        """Outputs up to and with the first wanted one."""
        seen: list[Output] = []
        while not (seen and wanted(seen[-1])):
            line = self._line()
            assert line is not None, f"the agent ended after {seen[-3:]}"
            seen += self._feed(line)
        return seen

    def ended(self) -> tuple[list[Output], int, str]:
        """Everything until the process is over, its exit code and its stderr."""
        seen: list[Output] = []
        while (line := self._line()) is not None:
            seen += self._feed(line)
        assert self.process.stderr is not None
        return seen, self.process.wait(PATIENCE), self.process.stderr.read().decode()

    def close_stdin(self) -> None:
        """Let its stdin end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _feed(self, line: bytes) -> list[Output]:
        self.frames.append(line)
        try:
            return list(self.translator.feed(line))
        except Unreadable as error:
            self.unreadable.append(error)
            return []

    def _line(self) -> bytes | None:
        assert self.process.stdout is not None
        while not self._lines:
            readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert readable, "the agent says nothing"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                return None
            *self._lines, self._partial = (self._partial + data).split(b"\n")
        return self._lines.pop(0)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def running(tmp_path: Path, **fields: Any) -> Iterator[Mock]:
    """A mock agent that is gone after the block; its folder and HOME stay for the next one."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir(exist_ok=True)
    cwd.mkdir(exist_ok=True)
    mock = Mock(home, cwd, **fields)
    try:
        yield mock
    finally:
        mock.close()


def drafts(outputs: Sequence[Output]) -> list[Draft]:
    """The events among the outputs, without their raw frames."""
    return [msgspec.structs.replace(output, raw=None) for output in outputs if isinstance(output, Draft)]


def data_of(outputs: Sequence[Output], kind: str) -> list[Any]:
    """The data of all events of a type."""
    return [draft.data for draft in drafts(outputs) if draft.type == kind]


def completed(outputs: Sequence[Output]) -> list[Item]:
    """The final items."""
    return [draft.data.item for draft in drafts(outputs) if isinstance(draft.data, ItemCompletedData)]


def texts(outputs: Sequence[Output]) -> list[str]:
    """The final text of each message."""
    parts = [part for item in completed(outputs) if item.kind == "message" for part in item.content]
    return [part.text for part in parts if isinstance(part, TextPart)]


def ask_of(events: Sequence[Draft]) -> str:
    """The id of the ask that was opened last."""
    data = events[-1].data
    if isinstance(data, PermissionData):
        return data.permission_id
    assert isinstance(data, QuestionData)
    return data.question_id


def pid_in(outputs: Sequence[Output]) -> int:
    """The pid the agent told."""
    found = re.search(r"pid (\d+)", texts(outputs)[-1])
    assert found is not None
    return int(found[1])


def kill(pid: int) -> None:
    """End one process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def marked(mark: str) -> list[int]:
    """The live processes that carry a mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if wanted in _environ(folder)]


def wait_until_alone(mock: Mock) -> None:
    """Wait until the agent has no other process."""
    deadline = time.monotonic() + PATIENCE
    while (pids := marked(mock.mark)) != [mock.process.pid]:
        assert time.monotonic() < deadline, f"still alive: {pids}"


def kill_marked(mark: str) -> None:
    """End every process with the mark; one that forks can slip through a single look."""
    deadline = time.monotonic() + PATIENCE
    quiet = 0
    while quiet < 5:
        pids = marked(mark)
        assert time.monotonic() < deadline, f"still alive: {pids}"
        quiet = 0 if pids else quiet + 1
        for pid in pids:
            kill(pid)


def _environ(folder: Path) -> bytes:
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""
