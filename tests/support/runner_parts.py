"""What the runner's tests share: a leash that tells whether a process tree is gone, a tiny adapter, and a sink."""

import asyncio
import os
import select
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import (
    Adapter,
    Credential,
    Info,
    Installation,
    Launch,
    Output,
    Ready,
    Send,
    TurnDone,
    Unreadable,
    all_but,
)
from ostler.agents.mock import MockAdapter
from ostler.agents.sources import OnPath, Source
from ostler.runner.execution.limits import Limits
from ostler.runner.local import LocalRunner
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import Command, Process
from ostler.wire.agents import Agent, Model
from ostler.wire.events import ItemDeltaData, PermissionData, SessionInfoData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentExit, AgentSpec, Answer, Connected, Draft, PermissionAnswer, Prompt

PROGRAMS = Path(__file__).parents[1] / "runner" / "programs"
HERE = str(PROGRAMS / "here")
PATIENCE = 60.0


async def started(nursery: NurseryHandle, command: Command) -> Process:
    """A process that dies with us, spooled to a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    return await Process.start(nursery, command, folder, lambda: None, patience=0)


class Leash:
    """A FIFO that every process of a tree holds open: its end of file says that none of them is alive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.heard = b""

    def hear(self) -> bool:
        """Take in what was written; True at the end of file."""
        while True:
            try:
                chunk = os.read(self._reader, 65536)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            self.heard += chunk

    def has(self, mark: bytes, count: int) -> bool:
        """Whether so many marks have been written."""
        self.hear()
        return self.heard.count(mark) >= count

    def all_dead(self) -> bool:
        """Whether the last holder is gone."""
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        return self.hear() and any(event & select.POLLHUP for _, event in poller.poll(0))

    def close(self) -> None:
        os.close(self._reader)


def parent_of(pid: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def state_of(pid: int) -> str:
    """The state letter of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class TinyTranslator:
    """Speaks with programs/agent.py."""

    def __init__(self, spec: AgentSpec) -> None:
        self._start = spec.start
        self._turn = 0

    def open(self) -> Sequence[Output]:
        return ()

    def feed(self, frame: bytes) -> Sequence[Output]:
        match msgspec.json.decode(frame):
            case {"ready": native}:
                return (Ready(native_session_id=native, agent_version="1"),)
            case {"say": text}:
                delta = ItemDeltaData(item_id=f"itm_{self._start}_{self._turn}", delta=TextPart(text=text))
                return (Draft("item.delta", delta, raw=frame),)
            case {"ask": ask_id}:
                data = PermissionData(permission_id=ask_id, action="write", status="requested")
                return (Draft("permission.requested", data, raw=frame),)
            case {"done": outcome}:
                return (TurnDone(outcome=outcome),)
            case {"boom": text}:
                raise RuntimeError(text)
            case _:
                raise Unreadable("unknown frame", "$")

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        self._turn += 1
        return (_send({"prompt": _text(prompt)}),)

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        return None if _text(prompt) == "no" else (_send({"steer": _text(prompt)}),)

    def interrupt(self) -> Sequence[Output]:
        return (_send({"interrupt": True}),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        allow = isinstance(answer, PermissionAnswer) and answer.allow
        return (_send({"answer": answer.ask_id, "allow": allow}),)


def _send(frame: dict[str, Any]) -> Send:
    return Send(msgspec.json.encode(frame))


def _text(prompt: Prompt) -> str:
    return "".join(part.text for part in prompt.parts if isinstance(part, TextPart))


class TinyAdapter:
    """Starts programs/agent.py, or whatever a test wants started instead."""

    def __init__(self, *argv: str, files: dict[str, str] | None = None) -> None:
        agent = str(PROGRAMS / "agent.py")
        self._launch = Launch(argv=argv or (sys.executable, "-I", "-S", agent), files=files or {})

    @classmethod
    def that_first(cls, action: str) -> "TinyAdapter":
        """An agent that does something before it is ready."""
        return cls(sys.executable, "-I", "-S", str(PROGRAMS / "agent.py"), "-start", action)

    @property
    def info(self) -> Info:
        return Info(id="tiny", name="Tiny", capabilities=all_but(), aliases=("small",))

    @property
    def sources(self) -> tuple[Source, ...]:
        return (OnPath(program="tiny-agent"),)

    @property
    def credentials(self) -> tuple[Credential, ...]:
        return ()

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        return self._launch

    def translator(self, spec: AgentSpec) -> TinyTranslator:
        return TinyTranslator(spec)


class Recorder:
    """A sink that remembers; each delivery can be slowed down."""

    def __init__(self, *, keep: bool = True) -> None:
        self.drafts: list[Draft] = []
        self.report: Connected | None = None
        self.end: AgentExit | None = None
        self.deliveries = 0
        self.steps: list[int] = []
        self._under_way = 0
        self.most_at_once = 0
        self.keep = keep
        self.on_deliver: Callable[[], Any] = lambda: None
        self.pause = 0.0

    async def connected(self, report: Connected) -> None:
        assert self.report is None, "connected twice"
        self.report = report

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        assert self.end is None, "delivered after closed"
        self.deliveries += 1
        self.steps.append(step)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        self.drafts += [draft for draft in drafts if self.keep or draft.type == "turn.ended"]
        self.on_deliver()
        await asyncio.sleep(self.pause)
        self._under_way -= 1

    async def closed(self, end: AgentExit) -> None:
        assert self.end is None, "closed twice"
        self.end = end

    @property
    def native_session_id(self) -> str | None:
        """The agent's own id of the session, as far as it was told."""
        infos = [draft.data for draft in self.drafts if isinstance(draft.data, SessionInfoData)]
        return next((info.native_session_id for info in reversed(infos) if info.native_session_id), None)

    def types(self) -> list[str]:
        return [draft.type for draft in self.drafts]

    def turns_ended(self) -> int:
        return self.types().count("turn.ended")

    def texts(self) -> list[str]:
        deltas = [draft.data.delta for draft in self.drafts if isinstance(draft.data, ItemDeltaData)]
        return [delta.text for delta in deltas if isinstance(delta, TextPart)]


class OfferingAdapter(TinyAdapter):
    """Tells its models only once it runs."""

    def translator(self, spec: AgentSpec) -> TinyTranslator:
        class Offering(TinyTranslator):
            def feed(self, frame: bytes) -> Sequence[Output]:
                found = super().feed(frame)
                models = (Model(id="m1", name="M1"),)
                return [Ready(models=models) if isinstance(output, Ready) else output for output in found]

        return Offering(spec)


class Desk:
    """A server that is told which agents there are."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}

    async def offered(self, agents: Sequence[Agent]) -> None:
        self.agents.update({agent.id: agent for agent in agents})


LIMITS = Limits(
    start_timeout=PATIENCE,
    turn_timeout=0,
    interrupt_grace=PATIENCE,
    stop_grace=2.0,
    max_frame_bytes=8 * 2**20,
    patience=PATIENCE,
)
ADAPTERS: Sequence[Adapter] = (MockAdapter(), TinyAdapter())


def local_runner(folder: Path, search: str = HERE, adapters: Sequence[Adapter] = ADAPTERS) -> LocalRunner:
    environ = {"PATH": os.defpath}
    return LocalRunner(adapters, folder=folder, environ=environ, search=[search], limits=LIMITS)


def spec_in(folder: Path, agent: str = "mock", **more: object) -> AgentSpec:
    given = {"cwd": str(folder), "home": str(folder / "home"), "env": {}, "permission_mode": "default", **more}
    return AgentSpec(session_id="ses_1", agent=agent, start=1, **given)  # type: ignore[arg-type]


def prompt(text: str, name: str = "prm_1", turn: str = "trn_1") -> Prompt:
    return Prompt(prompt_id=name, turn_id=turn, parts=(TextPart(text=text),))
