"""A turn whose process died: how the next process goes on with it by what the log has, or what is to be closed."""

from typing import NamedTuple

from ostler.base.errors import AgentExited, AgentStartFailed, OstlerError
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.log.transcript import Transcript
from ostler.server.sessions.session import SessionCore
from ostler.wire.events import PermissionData, QuestionData, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import PromptPart
from ostler.wire.running import Answer, Continued, Draft, PermissionAnswer, Prompt, QuestionAnswer
from ostler.wire.sessions import Ask, Turn

_MOST_DEATHS = 3
"""How many processes may die one after the other in a turn that does not come any further."""
_MESSAGE = "itm_prm_"


class _LeftTurn(NamedTuple):
    """A turn without a process."""

    prompt: Prompt
    """What it was begun with."""
    continued: Continued
    finished: int
    """How much has come of it."""


class Continuing:
    """Goes on with the turn of a process that died, in another one."""

    def __init__(self, session: SessionCore, agent: SessionAgent) -> None:
        self._session = session
        self._agent = agent
        self._died_at: tuple[str, int, int] | None = None
        self._deaths = 0

    async def go_on(self, turn_id: str, why: OstlerError, *, rebooted: bool = False) -> None:
        """Hand the turn to a new process; raises why the last one died if that makes no sense any more.

        `rebooted` says that the machine stopped in it.
        """
        while True:
            turn = self._session.state.turn
            left = await _left_turn(self._session, turn, rebooted=rebooted) if turn is not None else None
            if not is_current(self._session, turn_id):
                return
            if left is None or not self._may_go_on(left):
                raise why
            try:
                await self._agent.prompt(left.prompt, left.continued)
            except (AgentExited, AgentStartFailed) as error:
                why = error
                self._agent.forget()
            else:
                await self._tell_decided(left.continued)
                return

    def _may_go_on(self, left: _LeftTurn) -> bool:
        """Whether the turn has come any further since its process died the last times.

        It has if people know of more that is finished, or if the agent has more in its memory: what a process began or
        recorded counts, also if nobody had heard of it when the next one began.
        """
        point = (left.prompt.turn_id, left.finished, self._agent.reached)
        self._deaths = self._deaths + 1 if point == self._died_at else 1
        self._died_at = point
        return self._deaths <= _MOST_DEATHS

    async def _tell_decided(self, continued: Continued) -> None:
        """Tell the new process what was decided while it started."""
        still_open = {ask.ask_id for ask in self._session.state.asks}
        for ask_id in continued.open_asks:
            if ask_id not in still_open:
                ask = await self._session.reads.store.logs.find_ask(self._session.id, ask_id)
                if ask is not None and (answer := answer_of(ask)) is not None:
                    await self._agent.tell(answer)


def is_current(session: SessionCore, turn_id: str) -> bool:
    """Whether this turn is under way."""
    turn = session.state.turn
    return turn is not None and turn.turn_id == turn_id


async def _left_turn(session: SessionCore, turn: Turn, *, rebooted: bool) -> _LeftTurn | None:
    """What the log has of the turn under way; None if it does not even have its prompt."""
    transcript, asks = await _read(session, turn)
    items = [message.item for message in transcript.messages()]
    prompts = [_prompt(item, turn) for item in items if item.role == "user" and item.item_id.startswith(_MESSAGE)]
    if not prompts:
        return None
    ours = [item for item in items if item.native_item_id is not None]
    done = [item for item in ours if item.status != "in_progress"]
    continued = Continued(
        turn_id=turn.turn_id,
        heard=tuple(item.native_item_id for item in done if item.native_item_id is not None),
        items=tuple(item for item in ours if item.status == "in_progress"),
        permissions=tuple(ask for ask in asks if isinstance(ask, PermissionData)),
        questions=tuple(ask for ask in asks if isinstance(ask, QuestionData)),
        steered=tuple(prompts[1:]),
        rebooted=rebooted,
    )
    finished = sum(item.kind != "message" or item.status == "completed" for item in done)
    return _LeftTurn(prompts[0], continued, finished)


async def open_items(session: SessionCore) -> list[Draft]:
    """That nobody will finish what is open in the turn under way."""
    turn = session.state.turn
    if turn is None:
        return []
    transcript, _ = await _read(session, turn)
    return [drafts.item_failed(item) for item in transcript.open_items()]


def answer_of(ask: Ask) -> Answer | None:
    """What the log says was decided; None while that is on its way to the disk: who writes it tells the agent."""
    if ask.status == "requested":
        return None
    if ask.permission is not None:
        allow = ask.permission.status in {"accept", "accept_for_session"}
        return PermissionAnswer(ask_id=ask.ask_id, allow=allow, message=ask.permission.message)
    asked = ask.question
    answers, message = (asked.answers, asked.message) if asked is not None else (None, None)
    return QuestionAnswer(ask_id=ask.ask_id, answers=answers, message=message)


async def _read(session: SessionCore, turn: Turn) -> tuple[Transcript, list[PermissionData | QuestionData]]:
    transcript = Transcript()
    asks: dict[str, PermissionData | QuestionData] = {}
    store = session.reads.store
    await store.settled()
    async for page in pages(store, session.id, turn.first_sequence - 1):
        events = [decode_event(stored.body) for stored in page]
        transcript.add(events)
        for event in events:
            match event.data:
                case PermissionData(permission_id=ask_id) | QuestionData(question_id=ask_id) as ask:
                    asks[ask_id] = ask
                case _:
                    pass
    return transcript, list(asks.values())


def _prompt(item: Item, turn: Turn) -> Prompt:
    parts = tuple(part for part in item.content if isinstance(part, PromptPart))
    return Prompt(prompt_id=item.item_id[4:], turn_id=turn.turn_id, parts=parts)
