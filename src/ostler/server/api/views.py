"""How live sessions look on the wire."""

import msgspec

from ostler.server.sessions.live import LiveSession
from ostler.server.tasks.views import session_view
from ostler.wire.sessions import Session

API = "/api/v1"


def listed_view(session: Session) -> Session:
    """A session of a list: without its instructions and order, which could make a page of many megabytes."""
    return msgspec.structs.replace(session, instructions=None, system_prompt=None, task=None)


def live_view(live: LiveSession) -> Session:
    """A session that is in memory."""
    session = live.core
    view = session_view(session.record, session.shown, session.last, session.updated_at)
    return msgspec.structs.replace(view, process=live.agent.process)
