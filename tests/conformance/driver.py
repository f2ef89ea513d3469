"""Drives one real agent through the real runner, with a scripted model on loopback and a home of its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ostler.agents.adapter import Adapter
from ostler.link.protocol import Connection
from ostler.runner.connection import Limits
from ostler.runner.local import LocalRunner
from ostler.wire.events import PermissionData, QuestionData
from ostler.wire.items import Item
from ostler.wire.parts import PromptPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.providers import Provider, ProviderType
from ostler.wire.running import AgentExit, AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.conformance.model import ScriptedModel
from tests.conformance.programs import Search

PATIENCE = 90.0
Ask = PermissionData | QuestionData
OnAsk = Callable[[Ask], Answer | None]


def allow(ask: Ask) -> Answer:
    """Say yes to everything; take the first option of every question."""
    if isinstance(ask, PermissionData):
        return PermissionAnswer(ask_id=ask.permission_id, allow=True)
    firsts = tuple((question.options[0].label,) if question.options else ("yes",) for question in ask.questions)
    return QuestionAnswer(ask_id=ask.question_id, answers=firsts or ((ask.options[0],),))


def reject(message: str) -> OnAsk:
    """Say no to everything, with a reason."""

    def answer(ask: Ask) -> Answer:
        if isinstance(ask, PermissionData):
            return PermissionAnswer(ask_id=ask.permission_id, allow=False, message=message)
        return QuestionAnswer(ask_id=ask.question_id, answers=None, message=message)

    return answer


def keep_waiting(_: Ask) -> None:
    """Leave the ask open."""


class Sink:
    """Takes what the runner delivers and answers asks as it is told."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.end: AgentExit | None = None
        self.on_ask: OnAsk = allow
        self.connection: Connection | None = None
        self._changed = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()

    async def deliver(self, drafts: Sequence[Draft]) -> None:
        self.drafts += drafts
        for draft in drafts:
            if draft.type in {"permission.requested", "question.requested"}:
                self._answer(draft.data)
        self._changed.set()

    def _answer(self, ask: Any) -> None:
        answer = self.on_ask(ask)
        if answer is not None and self.connection is not None:
            task = asyncio.create_task(self.connection.answer(answer))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def closed(self, end: AgentExit) -> None:
        self.end = end
        self._changed.set()

    async def until(self, found: Callable[[Draft], bool], since: int = 0, seconds: float = PATIENCE) -> Draft:
        """Wait for an event; fails with everything that came instead."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for draft in self.drafts[since:]:
                        if found(draft):
                            return draft
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            shown = "\n".join(f"{draft.type} {draft.data}"[:300] for draft in self.drafts[since:])
            raise AssertionError(f"waited {seconds} s in vain; came instead:\n{shown}") from None


class Driven:
    """A conversation with one running agent."""

    def __init__(self, connection: Connection, sink: Sink, model: ScriptedModel, cwd: Path) -> None:
        self.connection = connection
        self.sink = sink
        self.model = model
        self.cwd = cwd
        self._turns = 0

    async def send(self, *script: str, parts: Sequence[PromptPart] = ()) -> int:
        """Begin a turn; returns where its events start."""
        self._turns += 1
        since = len(self.sink.drafts)
        text = "\n".join(f"SCRIPT: {line}" for line in script)
        prompt = Prompt(
            prompt_id=f"prm_{self._turns}", turn_id=f"trn_{self._turns}", parts=(TextPart(text=text), *parts)
        )
        await self.connection.prompt(prompt)
        return since

    async def ended(self, since: int, seconds: float = PATIENCE) -> list[Draft]:
        """The events of a turn, once it is over."""
        await self.sink.until(lambda draft: draft.type == "turn.ended", since, seconds)
        return self.sink.drafts[since:]

    async def turn(self, *script: str, on_ask: OnAsk = allow, parts: Sequence[PromptPart] = ()) -> list[Draft]:
        """One whole turn."""
        self.sink.on_ask = on_ask
        return await self.ended(await self.send(*script, parts=parts))

    async def remembered(self) -> str:
        """The agent's own id of the conversation, once whoever keeps it has it."""
        native = self.connection.native_session_id
        assert native is not None
        async with asyncio.timeout(PATIENCE):
            while not self.model.knows(native):
                await asyncio.sleep(0.05)
        return native


class Row:
    """One agent of the suite: its adapter and how its model is reached."""

    def __init__(
        self,
        adapter: Adapter,
        *,
        provider: ProviderType | None,
        model: str | None,
        service: type[ScriptedModel] = ScriptedModel,
        variables: Callable[[str], dict[str, str]] = lambda _: {},
        **fields: Any,
    ) -> None:
        self.adapter = adapter
        self.provider = provider
        self.model = model
        self.service = service
        """The model, or a whole service around it."""
        self.variables = variables
        """What the agent's environment says about the service, by its address."""
        self.fields = fields


@asynccontextmanager
async def driven(row: Row, folder: Path, *, search: Search, **fields: Any) -> AsyncIterator[Driven]:
    """Start an agent in a folder; the same folder again gives it the same home and workspace."""
    cwd = folder / "workspace"
    cwd.mkdir(parents=True, exist_ok=True)
    environ = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    limits = Limits(
        start_timeout=PATIENCE, turn_timeout=PATIENCE, interrupt_grace=15, stop_grace=2, max_frame_bytes=64 * 2**20
    )
    search.check(row.adapter)
    runner = LocalRunner(
        [row.adapter], environ=environ, search=search.folders, limits=limits, installer=search.installer
    )
    with row.service() as model:
        spec = _spec(row, folder, cwd, model.url, fields)
        sink = Sink()
        try:
            connection = await runner.connect(spec, sink)
            sink.connection = connection
            yield Driven(connection, sink, model, cwd)
        finally:
            await runner.close()


def _spec(row: Row, folder: Path, cwd: Path, url: str, fields: dict[str, Any]) -> AgentSpec:
    chosen: dict[str, Any] = {
        "session_id": "ses_1",
        "agent": row.adapter.info.id,
        "start": 1,
        "cwd": str(cwd),
        "home": str(folder / "home"),
        "env": row.variables(url),
        "permission_mode": "default",
        "model": row.model,
        "provider": Provider(type=row.provider, base_url=url, api_key="sk-test") if row.provider else None,
        **row.fields,
        **fields,
    }
    return AgentSpec(**chosen)


# What came out of a turn


def said(drafts: Sequence[Draft]) -> str:
    """All final text of the assistant."""
    return "".join(
        part.text
        for item in items(drafts)
        if item.kind == "message" and item.role == "assistant"
        for part in item.content
        if isinstance(part, TextPart)
    )


def thought(drafts: Sequence[Draft]) -> str:
    """All final reasoning."""
    return "".join(part.text for item in items(drafts) for part in item.content if isinstance(part, ReasoningPart))


def items(drafts: Sequence[Draft]) -> list[Item]:
    """Completed items in order; a later completion of an item replaces an earlier one."""
    found: dict[str, Item] = {}
    for draft in drafts:
        if draft.type == "item.completed":
            item: Item = getattr(draft.data, "item")  # noqa: B009  the type of data follows from the type of event
            found[item.item_id] = item
    return list(found.values())


def calls(drafts: Sequence[Draft]) -> list[ToolCallPart]:
    """Tool calls."""
    return [part for item in items(drafts) for part in item.content if isinstance(part, ToolCallPart)]


def results(drafts: Sequence[Draft]) -> list[ToolResultPart]:
    """Tool results."""
    return [part for item in items(drafts) for part in item.content if isinstance(part, ToolResultPart)]


def of_type(drafts: Sequence[Draft], kind: str) -> list[Any]:
    """The data of all events of a type."""
    return [draft.data for draft in drafts if draft.type == kind]


def outcome(drafts: Sequence[Draft]) -> str:
    """How the turn ended; there is exactly one end."""
    (end,) = of_type(drafts, "turn.ended")
    return str(end.outcome)
