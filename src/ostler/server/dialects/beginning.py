"""Sessions that begin with a prompt: there are both, or neither."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ostler.base.errors import OstlerError
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.records import SessionRecord
from ostler.wire.sessions import CreateSession, PromptReceipt, SendMessage

_NO_CHANGE = SessionChange()
_OWN_NAMES: Mapping[str, str] = {}


class Begun(NamedTuple):
    """A session that was given a prompt."""

    live: LiveSession
    receipt: PromptReceipt
    offset: int
    """Where in the log its turn begins; of one that waits, where the log was before."""


async def begin(
    sessions: Sessions,
    project: str,
    wanted: CreateSession,
    prompt: SendMessage,
    beside: SessionRecord | None = None,
) -> Begun:
    """Create a session and send its first prompt; a prompt that is refused leaves no session behind.

    `beside` is a session whose folder the new one works in.
    """
    live, is_new = await sessions.creation.create(project, wanted, beside=beside)
    change = _change_of(wanted)
    return await (begin_with(sessions, live, prompt, change) if is_new else send(sessions, live, prompt, change))


async def begin_with(
    sessions: Sessions,
    live: LiveSession,
    prompt: SendMessage,
    change: SessionChange,
    names: Mapping[str, str] = _OWN_NAMES,
) -> Begun:
    """Send the first prompt of a session that was made for it; it goes if the prompt is refused."""
    session = live.core
    try:
        return await send(sessions, live, prompt, change, names)
    except OstlerError:
        if not _is_used(session):
            await sessions.delete(session.record.project, session.id)
        raise


def _is_used(session: SessionCore) -> bool:
    """Whether another client, who knew the key, was faster with a prompt of their own."""
    state = session.state
    return state.turn is not None or state.last_turn is not None or bool(state.queue)


def _change_of(wanted: CreateSession) -> SessionChange:
    """What was wanted of a session that somebody else may have created, or changed, a moment before."""
    return msgspec.convert(wanted, SessionChange, from_attributes=True)


async def send(
    sessions: Sessions,
    live: LiveSession,
    prompt: SendMessage,
    change: SessionChange = _NO_CHANGE,
    names: Mapping[str, str] = _OWN_NAMES,
) -> Begun:
    """Send one more prompt; `names` are what the client calls what it changes."""
    before = live.core.last
    receipt = await sessions.send(live, prompt, change, names)
    return Begun(live, receipt, await _offset(sessions, live.core, receipt, before))


async def _offset(sessions: Sessions, session: SessionCore, receipt: PromptReceipt, before: int) -> int:
    """Other turns may have gone on, and even begun, while the prompt was looked at."""
    if receipt.disposition != "started" or receipt.turn_id is None:
        return before
    turn = session.state.turn
    if turn is None or turn.turn_id != receipt.turn_id:
        turn = await sessions.store.logs.find_turn(session.id, receipt.turn_id)
    return turn.first_sequence - 1 if turn is not None else before
