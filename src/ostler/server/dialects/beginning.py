"""Sessions that begin with a prompt: there are both, or neither."""

from typing import NamedTuple

from ostler.base.errors import OstlerError
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions
from ostler.wire.sessions import CreateSession, PromptReceipt, SendMessage


class Begun(NamedTuple):
    """A session that was given a prompt."""

    live: LiveSession
    receipt: PromptReceipt
    offset: int
    """Where in the log it was before."""


async def begin(sessions: Sessions, project: str, wanted: CreateSession, prompt: SendMessage) -> Begun:
    """Create a session and send its first prompt; a prompt that is refused leaves no session behind."""
    live, is_new = await sessions.create(project, wanted)
    try:
        return await send(sessions, live, prompt)
    except OstlerError:
        if is_new:
            await sessions.delete(project, live.id)
        raise


async def send(sessions: Sessions, live: LiveSession, prompt: SendMessage) -> Begun:
    """Send one more prompt."""
    offset = live.log.last
    return Begun(live, await sessions.send(live, prompt), offset)
