"""The sessions that one client is attached to."""

from typing import Protocol

from ostler.server.dialects.acp.attachment import Attachment
from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.conversation import LeftBehind
from ostler.server.dialects.following import turn_boundary
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions


class Source(Protocol):
    """A session that a client is attached to, here or at another server."""

    @property
    def id(self) -> str:
        """The session's."""
        ...

    async def next(self, *, timeout: float) -> list[Json] | None:
        """The next messages; nothing when the time is up, None when there will be none."""
        ...

    def lost(self) -> list[Json]:
        """What is left to say when there will be none."""
        ...

    def watch(self) -> None:
        """Somebody reads."""
        ...

    def unwatch(self) -> None:
        """Nobody does any more."""
        ...


class Outlet(Protocol):
    """How a client hears of things; implemented once for each way it can be connected."""

    async def send(self, message: Json) -> None:
        """Tell something that belongs to no attached session."""

    def attach(self, attachment: Source) -> None:
        """Begin to pass on what an attached session has to say."""

    async def detach(self, attachment: Source) -> None:
        """Stop that."""

    def is_read(self, session_id: str) -> bool:
        """Whether somebody takes what the session says now."""


class Attachments:
    """At most one attachment for each session."""

    def __init__(self, sessions: Sessions, outlet: Outlet) -> None:
        self.forms = False
        """Whether the client can show forms."""
        self._sessions = sessions
        self._outlet = outlet
        self._found: dict[str, Attachment] = {}

    def get(self, session_id: str) -> Attachment | None:
        """The attachment to a session, if there is one."""
        return self._found.get(session_id)

    async def attach_now(self, live: LiveSession) -> Attachment:
        """Tell what happens from now on; what is under way is read from its beginning, so that it is understood."""
        session = live.core
        found = self._found.get(session.id)
        if found is not None and found.live is not live:  # it was elsewhere meanwhile
            await self.detach(session.id)
        now = session.last
        start = await turn_boundary(self._sessions, session.id, now)
        return self._found.get(session.id) or self.attach(live, start=start.offset, quiet_until=now)

    def attach(self, live: LiveSession, *, start: int, quiet_until: int, past: LeftBehind | None = None) -> Attachment:
        """Tell what happened after an event, though nothing up to `quiet_until`."""
        attachment = Attachment(live, start=start, quiet_until=quiet_until, forms=self.forms, past=past)
        self._found[live.core.id] = attachment
        live.core.hold()
        self._outlet.attach(attachment)
        return attachment

    async def detach(self, session_id: str) -> Attachment | None:
        """Tell nothing more of a session."""
        attachment = self._found.pop(session_id, None)
        if attachment is not None:
            attachment.retire()
            try:
                await self._outlet.detach(attachment)
            finally:
                attachment.live.core.release()
        return attachment

    async def close(self) -> None:
        """Tell nothing more."""
        for session_id in list(self._found):
            await self.detach(session_id)
