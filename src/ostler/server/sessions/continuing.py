"""A turn whose process died, as the log has it: what the next process needs to go on with it, or what to close."""

from typing import NamedTuple

from ostler.server.sessions import drafts
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.log.transcript import Transcript
from ostler.server.sessions.session import SessionCore
from ostler.wire.events import PermissionData, QuestionData, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import PromptPart
from ostler.wire.running import Answer, Continued, Draft, PermissionAnswer, Prompt, QuestionAnswer
from ostler.wire.sessions import Ask, Turn

MOST_DEATHS = 3
"""How many processes may die one after the other in a turn that does not come any further."""
_MESSAGE = "itm_prm_"


class LeftTurn(NamedTuple):
    """A turn without a process."""

    prompt: Prompt
    """What it was begun with."""
    continued: Continued
    finished: int
    """How much has come of it."""


async def left_turn(session: SessionCore, turn: Turn) -> LeftTurn | None:
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
    )
    finished = sum(item.kind != "message" or item.status == "completed" for item in done)
    return LeftTurn(prompts[0], continued, finished)


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
