"""A stage for recordings: the same cases, with the recorded frames of a real agent instead of the agent."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ostler.agents.adapter import Adapter, Output, Translator
from ostler.conformance.driven import Driven
from ostler.conformance.outcomes import Unmet
from ostler.conformance.recorder import HOME, WORKSPACE
from ostler.conformance.rows import row_of
from ostler.conformance.sink import AskSink
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.runner.execution.frames import FRAMINGS
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt
from tests.support.recorded import Line, Recording

HANDSHAKE_SECONDS = 5.0


class Script:
    """The lines of a recording, read once from top to bottom, whatever number of processes it is about."""

    def __init__(self, recording: Recording) -> None:
        self.framing = str(recording.header.get("framing", "lines"))
        self._lines = recording.lines
        self._at = 0
        self._found = [line.data["value"] for line in recording.lines if line.dir == "note" and "found" in line.data]

    @property
    def waits(self) -> bool:
        """Whether the agent said no more before it was told something."""
        return self._at == len(self._lines) or _is_order(self._lines[self._at])

    def next_frame(self, told: int) -> Line | None:
        """What the agent says next, unless it said it only after it was told one thing more."""
        seen = sum(_is_order(line) for line in self._lines[: self._at])
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _is_order(line) and seen == told:
                return None
            self._at += 1
            seen += _is_order(line)
            if line.dir == "out":
                return line
        return None

    def next_found(self) -> Any:
        """What the case found next in the world."""
        return self._found.pop(0)


def _is_order(line: Line) -> bool:
    return line.dir == "note" and "told" in line.data


class CountingTranslator:
    """Counts what the translator is told, all processes together."""

    def __init__(self, translator: Translator, counter: "Counter") -> None:
        self._translator = translator
        self._counter = counter

    def open(self) -> Sequence[Output]:
        return self._counter.count(self._translator.open())

    def feed(self, frame: bytes) -> Sequence[Output]:
        return self._translator.feed(frame)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        return self._counter.count(self._translator.prompt(prompt))

    def steer(self, prompt: Prompt) -> Sequence[Output] | None:
        outputs = self._translator.steer(prompt)
        return None if outputs is None else self._counter.count(outputs)

    def interrupt(self) -> Sequence[Output]:
        return self._counter.count(self._translator.interrupt())

    def answer(self, answer: Answer) -> Sequence[Output]:
        return self._counter.count(self._translator.answer(answer))


class Counter:
    """How often something was told."""

    def __init__(self) -> None:
        self.told = 0

    def count(self, outputs: Sequence[Output]) -> Sequence[Output]:
        self.told += 1
        return outputs


class ReplayConnection:
    """The link to an agent that is only a recording."""

    def __init__(self, translator: Translator, script: Script, counter: Counter, sink: AskSink) -> None:
        self._script = script
        self._counter = counter
        self._sink = sink
        self._wrap = FRAMINGS[script.framing].wrap
        self.dialogue = Dialogue(
            CountingTranslator(translator, counter),
            start=1,
            max_frame_bytes=2**24,
            counts=Counts(),
            framing=script.framing,
        )
        self._moved = asyncio.Event()
        self._playing = asyncio.create_task(self._play())

    async def open(self) -> None:
        """Play the handshake."""
        self.dialogue.open()
        self._moved.set()
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            while self.dialogue.ready is None:
                await asyncio.sleep(0)

    async def prompt(self, prompt: Prompt) -> None:
        self.dialogue.prompt(prompt)
        self._moved.set()

    async def steer(self, prompt: Prompt) -> bool:
        steered = self.dialogue.steer(prompt)
        self._moved.set()
        return steered

    async def interrupt(self) -> None:
        self.dialogue.interrupt("interrupted")
        self._moved.set()

    async def answer(self, answer: Answer) -> None:
        self.dialogue.answer(answer)
        self._moved.set()

    async def close(self) -> None:
        self._playing.cancel()
        await asyncio.gather(self._playing, return_exceptions=True)

    async def _play(self) -> None:
        while True:
            self._moved.clear()
            while (line := self._script.next_frame(self._counter.told)) is not None:
                self.dialogue.feed(self._wrap(line.frame))
                await self._sink.deliver(self.dialogue.take_drafts(), 0)
                await asyncio.sleep(0)  # the case may want to say something before the agent goes on
            await self._sink.deliver(self.dialogue.take_drafts(), 0)
            await self._moved.wait()


class RecordedWorld:
    """What the case found when it was recorded."""

    def __init__(self, script: Script, cwd: Path) -> None:
        self._script = script
        self.cwd = cwd

    def put(self, name: str, content: bytes) -> None:
        """A file for the translator; the agent has seen it already."""
        (self.cwd / name).write_bytes(content)

    def content(self, name: str) -> str | None:
        found: str | None = self._script.next_found()
        return found

    def reached_model(self, pattern: str, told: str = "") -> bool:
        return bool(self._script.next_found())

    def efforts(self, told: str = "") -> set[str]:
        return set(self._script.next_found())

    async def appears(self, name: str) -> None:
        """It did, before the agent was told more."""
        while not self._script.waits:
            await asyncio.sleep(0)

    async def answers(self, pattern: str, heard: Callable[[], bool]) -> None:
        """It did, before the agent was told more."""
        while not (self._script.waits or heard()):
            await asyncio.sleep(0)

    async def known(self, native_session_id: str) -> None:
        """It was."""


class ReplayStage:
    """A stage on which a recording is played."""

    def __init__(self, adapter: Adapter, recording: Recording, cwd: Path, *, patience: float) -> None:
        self._adapter = adapter
        self._cwd = cwd
        self._patience = patience
        self._row = row_of(adapter)
        self._script = Script(recording)
        self._counter = Counter()
        self._sinks: list[AskSink] = []

    @property
    def unparsed(self) -> list[str]:
        """What was wrong with frames that nobody understood."""
        return [error for sink in self._sinks for error in sink.unparsed]

    @property
    def drafts(self) -> list[Draft]:
        """Everything that the agent was understood to do."""
        return [draft for sink in self._sinks for draft in sink.drafts]

    @property
    def variant(self) -> str:
        """An effort that the agent offers."""
        return self._row.variant

    @asynccontextmanager
    async def agent(self, **fields: Any) -> AsyncIterator[Driven]:
        """The agent as it was recorded."""
        sink = AskSink(patience=self._patience)
        self._sinks.append(sink)
        translator = self._adapter.translator(self._spec(fields))
        connection = ReplayConnection(translator, self._script, self._counter, sink)
        sink.connection = connection  # type: ignore[assignment]  # the cases need no more of it than it has
        try:
            await connection.open()
            yield Driven(connection, sink, RecordedWorld(self._script, self._cwd), self._row.script)  # type: ignore[arg-type]  # likewise
        except TimeoutError:
            raise Unmet("the recorded handshake makes no ready agent") from None
        finally:
            await connection.close()

    def _spec(self, fields: dict[str, Any]) -> AgentSpec:
        chosen: dict[str, Any] = {
            "session_id": "ses_1",
            "agent": self._adapter.info.id,
            "start": 1,
            "cwd": WORKSPACE,
            "home": HOME,
            "env": {"OPENAI_API_KEY": "sk-test"},
            "permission_mode": "default",
            "model": self._row.model,
            **fields,
        }
        return AgentSpec(**chosen)
