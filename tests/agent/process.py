"""The agent as a process, through its own two pipes, with a scripted model behind it."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import (
    AgentReady,
    AnyFromAgent,
    AnyToAgent,
    Done,
    FromAgent,
    Grown,
    Interrupted,
    Noted,
    Prompted,
    Start,
    Steered,
    ToolBegun,
    ToolEnded,
)
from tests.support.patience import stretched

PATIENCE = 60.0
PATHS = {"chat": "/v1", "messages": "", "responses": "/v1", "gemini": ""}
APIS = tuple(PATHS)
SIGNED = {
    "messages": "signature",
    "responses": "encrypted_content",
    "chat": "reasoning_content",
    "gemini": "thoughtSignature",
}
"""What holds the model's own mark in each protocol."""
_Kind = TypeVar("_Kind", bound=FromAgent)
_decoder: msgspec.json.Decoder[AnyFromAgent] = msgspec.json.Decoder(AnyFromAgent)


class Agent:
    """One running agent, and what it has said."""

    def __init__(self, folder: Path, environ: dict[str, str], start: Start) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir(exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-m", "ostler.agent"],
            cwd=self.workspace,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"], **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.frames: list[AnyFromAgent] = []
        self._partial = b""
        self._lines: list[bytes] = []
        self.send(start)
        self.ready = self.until(AgentReady)

    def send(self, frame: AnyToAgent) -> None:
        """Write a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(frame) + b"\n")

    def prompt(self, *script: str, **fields: Any) -> None:
        """Begin a turn with lines for the scripted model."""
        self.send(Prompted(text=scripted(*script), **fields))

    def steer(self, *script: str) -> None:
        """Add to the running turn."""
        self.send(Steered(text=scripted(*script)))

    def interrupt(self) -> None:
        """End the running turn."""
        self.send(Interrupted())

    def turn(self, *script: str, **fields: Any) -> list[AnyFromAgent]:
        """A whole turn that needs nobody."""
        self.prompt(*script, **fields)
        return self.rest()

    def rest(self) -> list[AnyFromAgent]:
        """Everything up to the end of the turn."""
        before = len(self.frames)
        self.until(Done)
        return self.frames[before:]

    def until(self, kind: type[_Kind], fits: Callable[[_Kind], bool] = lambda _: True) -> _Kind:
        """The next line of a kind."""
        while True:
            line = self._line()
            assert line is not None, f"the agent ended after {self.frames[-3:]}: {self._complaint()}"
            frame = _decoder.decode(line)
            self.frames.append(frame)
            if isinstance(frame, kind) and fits(frame):
                return frame

    def _line(self) -> bytes | None:
        assert self.process.stdout is not None
        while not self._lines:
            readable, _, _ = select.select([self.process.stdout], [], [], stretched(PATIENCE))
            assert readable, f"the agent says nothing after {self.frames[-3:]}"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                return None
            *self._lines, self._partial = (self._partial + data).split(b"\n")
        return self._lines.pop(0)

    def _complaint(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def close_input(self) -> int:
        """Let its input end, and wait for what becomes of it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(stretched(PATIENCE))

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(stretched(PATIENCE))
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def agent(folder: Path, model: ScriptedModel, api: str = "chat", /, **fields: Any) -> Iterator[Agent]:
    """An agent whose model is the scripted one; its folder is there for the next one."""
    environ = {"OSTLER_PROVIDER_KEY": "sk-test-of-the-session", **fields.pop("environ", {})}
    place = {"api": api, "base_url": f"{model.url}{PATHS[api]}", "model": "scripted-large"}
    start = Start(**{"version": "0", "permission_mode": "bypass", **place, **fields})
    started = Agent(folder, environ, start)
    try:
        yield started
    finally:
        started.kill()


def scripted(*lines: str) -> str:
    """Lines that the scripted model plays."""
    return "\n".join(f"SCRIPT: {line}" for line in lines)


def of(frames: list[AnyFromAgent], kind: type[_Kind]) -> list[_Kind]:
    """The lines of a kind."""
    return [frame for frame in frames if isinstance(frame, kind)]


def text(frames: list[AnyFromAgent], kind: str = "text") -> str:
    """All that was spoken, or thought."""
    return "".join(frame.text for frame in of(frames, Grown) if frame.kind == kind)


def results(frames: list[AnyFromAgent]) -> list[tuple[str, bool]]:
    """What the tools answered, and whether they failed, in the order of the calls."""
    answers = {frame.id: (frame.output, frame.failed) for frame in of(frames, ToolEnded)}
    begun = [frame.id for frame in of(frames, ToolBegun)]
    return [answers[native] for native in dict.fromkeys([*begun, *answers]) if native in answers]


def end(frames: list[AnyFromAgent]) -> tuple[str, str]:
    """How the turn ended."""
    [done] = of(frames, Done)
    return done.outcome, done.reason


def notices(frames: list[AnyFromAgent]) -> dict[str, str]:
    """What people were told, by its code."""
    return {frame.code: frame.message for frame in of(frames, Noted)}


def asked(model: ScriptedModel) -> list[dict[str, Any]]:
    """The bodies of all requests to the model."""
    return [request["body"] for request in model.requests]


def signed(api: str, found: Any) -> Iterator[dict[str, Any]]:
    """All blocks of a request that hold a mark of the model."""
    if isinstance(found, dict) and SIGNED[api] in found:
        yield found
    for each in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from signed(api, each)
