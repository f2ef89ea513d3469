"""What a case hears from its agent, and how it answers what the agent asks."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.conformance.outcomes import Unmet, of_type
from ostler.link.protocol import Connection
from ostler.wire.events import ItemDeltaData, ItemStartedData, PermissionData, QuestionData
from ostler.wire.parts import ToolCallPart
from ostler.wire.running import AgentExit, Answer, Connected, Draft, PermissionAnswer, QuestionAnswer

PATIENCE = 90.0
_SHOWN = 12
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


class AskSink:
    """Takes what the runner delivers and answers asks as it is told."""

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self.drafts: list[Draft] = []
        self.end: AgentExit | None = None
        self.on_ask: OnAsk = allow
        self.connection: Connection | None = None
        self._patience = patience
        self._changed = asyncio.Event()
        self._answers = Background(Log(__name__), "ask.not_answered")

    @property
    def unparsed(self) -> list[str]:
        """What was wrong with frames that nobody understood."""
        return [data.error for data in of_type(self.drafts, "agent.unparsed")]

    @property
    def native_session_id(self) -> str | None:
        """The agent's own id of the session, as far as it was told."""
        reported = [data.native_session_id for data in of_type(self.drafts, "session.info")]
        return next((native for native in reversed(reported) if native is not None), None)

    async def connected(self, report: Connected) -> None:
        """The process is there; nothing is to be known of it but its events."""

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        """Keep the events and answer the asks among them."""
        self.drafts += drafts
        for draft in drafts:
            if draft.type in {"permission.requested", "question.requested"}:
                self._answer(draft.data)
        self._changed.set()

    def _answer(self, ask: Any) -> None:
        answer = self.on_ask(ask)
        if answer is not None and self.connection is not None:
            self._answers.spawn(self.connection.answer(answer))

    async def closed(self, end: AgentExit) -> None:
        """The process is gone."""
        self.end = end
        self._changed.set()

    async def called(self, text: str, since: int = 0) -> None:
        """Wait until a tool is called with this in its arguments, which may come piece by piece."""
        written: list[str] = []

        def has_come(draft: Draft) -> bool:
            match draft.data:
                case ItemStartedData(item=item):
                    written.extend(part.arguments for part in item.content if isinstance(part, ToolCallPart))
                case ItemDeltaData(delta=ToolCallPart(arguments=arguments)):
                    written.append(arguments)
            return text in "".join(written)

        await self.until(has_come, "a call", since)

    async def until(self, found: Callable[[Draft], bool], what: str, since: int = 0) -> Draft:
        """Wait for an event; raises Unmet with what came instead."""
        try:
            async with asyncio.timeout(self._patience):
                return await self._wait(found, what, since)
        except TimeoutError:
            raise Unmet(f"waited {self._patience:g} s in vain for {what}; {self._instead(since)}") from None

    async def _wait(self, found: Callable[[Draft], bool], what: str, since: int) -> Draft:
        while True:
            over = self.end is not None  # looked at before the events, so that the last ones are not missed
            self._changed.clear()
            match = next((draft for draft in self.drafts[since:] if found(draft)), None)
            if match is not None:
                return match
            if over:
                raise Unmet(f"the agent's process ended before {what}; {self._instead(since)}")
            await self._changed.wait()

    def _instead(self, since: int) -> str:
        came = [f"{draft.type} {draft.data}"[:200] for draft in self.drafts[since:]]
        return "instead came " + ("nothing" if not came else "; ".join(came[-_SHOWN:]))
