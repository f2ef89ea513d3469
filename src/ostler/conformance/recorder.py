"""Records what goes back and forth between the translator and a real agent, case by case, as fixtures for tests."""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ostler.agents.adapter import Adapter, Credential, Info, Installation, Launch, Output, Ready, Send, Translator
from ostler.agents.sources import Source
from ostler.conformance.behaviours import Behaviour
from ostler.conformance.model import ScriptedModel
from ostler.conformance.stage import LiveStage
from ostler.conformance.suite import Suite
from ostler.conformance.world import LiveWorld, World
from ostler.wire.agents import BehaviourResult
from ostler.wire.running import AgentSpec, Answer, Prompt

_Value = TypeVar("_Value")
LONGEST_TEXT = 200
LONGEST_LIST = 8
WORKSPACE, HOME = "/workspace", "/home/agent"


class Recording:
    """The lines of one case, without paths of this machine and without long texts of others."""

    def __init__(self, folder: Path) -> None:
        self.version: str | None = None
        self.framing = "lines"
        self._started = time.monotonic()
        self._lines: list[dict[str, Any]] = []
        self._names = {
            str(folder / "workspace"): WORKSPACE,
            str(folder / "home"): HOME,
            str(folder): "/stage",
            str(Path(__file__).parents[1]): "/ostler",
            sys.executable: "python3",
            sys.prefix: "/python",
            tempfile.gettempdir(): "/temp",
        }

    def add(self, direction: str, data: Any) -> None:
        """One more line."""
        elapsed = round(time.monotonic() - self._started, 3)
        self._lines.append({"t": elapsed, "dir": direction, "data": self._plain(data)})

    def frame(self, direction: str, frame: bytes) -> None:
        """A frame: its JSON, or its text if it is none."""
        try:
            self.add(direction, msgspec.json.decode(frame))
        except msgspec.DecodeError:
            self.add(direction, frame.decode(errors="replace"))

    def write(self, path: Path, *, agent: str, case: str) -> None:
        """The whole recording: a header and a line for each message."""
        header = {"agent": agent, "version": self.version, "case": case, "framing": self.framing}
        lines = [{"header": header}, *self._lines]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def _plain(self, value: Any) -> Any:
        match value:
            case str():
                return self._short(value)
            case dict():
                return {self._short(str(name)): self._plain(each) for name, each in value.items()}
            case list() | tuple():
                return [self._plain(each) for each in value[:LONGEST_LIST]]
            case _:
                return value

    def _short(self, text: str) -> str:
        for place, name in self._names.items():
            text = text.replace(place, name)
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


class RecordingAdapter:
    """An adapter whose translators are overheard."""

    def __init__(self, adapter: Adapter, recording: Recording) -> None:
        self._adapter = adapter
        self._recording = recording

    @property
    def info(self) -> Info:
        """Facts about the agent."""
        return self._adapter.info

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where its program comes from."""
        return self._adapter.sources

    @property
    def credentials(self) -> tuple[Credential, ...]:
        """What it can log in with."""
        return self._adapter.credentials

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start."""
        launch = self._adapter.prepare(spec, installation)
        self._recording.framing = launch.framing
        return launch

    def translator(self, spec: AgentSpec) -> "RecordingTranslator":
        """A translator that is overheard."""
        return RecordingTranslator(self._adapter.translator(spec), self._recording)


class RecordingTranslator:
    """Notes what the translator is asked to do, what it hears, and what it sends."""

    def __init__(self, translator: Translator, recording: Recording) -> None:
        self._translator = translator
        self._recording = recording

    def open(self) -> Sequence[Output]:
        """The process has started."""
        return self._noted("open", self._translator.open())

    def feed(self, frame: bytes) -> Sequence[Output]:
        """One frame of the agent."""
        self._recording.frame("out", frame)
        return self._sent(self._translator.feed(frame))

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        return self._noted("prompt", self._translator.prompt(prompt))

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        """Add to the running turn."""
        outputs = self._translator.steer(prompt)
        return None if outputs is None else self._noted("steer", outputs)

    def interrupt(self) -> Sequence[Output]:
        """Ask the agent to end its turn."""
        return self._noted("interrupt", self._translator.interrupt())

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision."""
        return self._noted("answer", self._translator.answer(answer))

    def _noted(self, what: str, outputs: Sequence[Output]) -> Sequence[Output]:
        self._recording.add("note", {"told": what})
        return self._sent(outputs)

    def _sent(self, outputs: Sequence[Output]) -> Sequence[Output]:
        for output in outputs:
            if isinstance(output, Send):
                self._recording.frame("in", output.frame)
            if isinstance(output, Ready):
                self._recording.version = output.agent_version or self._recording.version
        return outputs


class RecordingWorld(LiveWorld):
    """Notes what the case finds in the workspace and at the model."""

    def __init__(self, folder: Path, model: ScriptedModel, recording: Recording) -> None:
        super().__init__(folder, model)
        self._recording = recording

    def content(self, name: str) -> str | None:
        """What a file holds."""
        return self._found("content", super().content(name))

    def reached_model(self, pattern: str, answer: str = "") -> bool:
        """Whether this was in a request to the model."""
        return self._found("reached_model", super().reached_model(pattern, answer))

    def efforts(self, answer: str = "") -> set[str]:
        """The efforts that the model was asked for."""
        found = super().efforts(answer)
        self._found("efforts", sorted(found))
        return found

    def _found(self, what: str, value: _Value) -> _Value:
        self._recording.add("note", {"found": what, "value": value})
        return value


class RecordingStage(LiveStage):
    """A stage on which everything is overheard."""

    def __init__(self, suite: Suite, behaviour: Behaviour, folder: Path) -> None:
        self.recording = Recording(folder)
        adapter = RecordingAdapter(suite.adapter, self.recording)
        super().__init__(adapter, suite.row, suite.programs, folder, patience=suite.patience(behaviour))

    def world(self, model: ScriptedModel) -> World:
        """What the agent does beside its events."""
        return RecordingWorld(self._folder, model, self.recording)


async def record(suite: Suite, out: Path, *, only: Sequence[str] = (), jobs: int = 1) -> AsyncIterator[BehaviourResult]:
    """Run the suite; what passes leaves a file in the folder."""
    stages: dict[str, RecordingStage] = {}

    def make_stage(behaviour: Behaviour, folder: Path) -> RecordingStage:
        stage = stages[behaviour.id] = RecordingStage(suite, behaviour, folder)
        return stage

    async for result in suite.run(only=only, jobs=jobs, make_stage=make_stage):
        if result.verdict == "passes":
            agent, path = suite.adapter.info.id, out / f"{result.behaviour}.jsonl"
            await asyncio.to_thread(stages[result.behaviour].recording.write, path, agent=agent, case=result.behaviour)
        yield result
