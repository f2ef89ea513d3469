"""What sessions that wait are told about the runners that are made for them."""

from contextlib import suppress

from ostler.base.errors import SessionNotFound
from ostler.base.errors.servers import OwnedElsewhere
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.sessions.service import Sessions


class Notices:
    """Writes lines into logs, and none twice in a row."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._last: dict[str, str] = {}

    async def tell(self, waiting: list[WaitingSession], text: str) -> None:
        """Tell these sessions why they wait."""
        for each in waiting:
            if self._last.get(each.id) != text:
                self._last[each.id] = text
                with suppress(SessionNotFound, OwnedElsewhere), Leases():
                    live = await self._sessions.registry.live(each.project, each.id)
                    if live.core.record.runner is None and not live.core.state.ended:
                        await live.core.note([drafts.on_runner(f"waiting for a runner: {text}", "queued")])

    def forget_others(self, waiting: set[str]) -> None:
        """Remember nothing of sessions that wait no longer."""
        for session_id in self._last.keys() - waiting:
            del self._last[session_id]
