"""The stream that one request gets: the chunks of one turn, whole or from where the client left off."""

from collections.abc import Sequence

from ostler.server.dialects.ai_sdk.chunks import DONE, AnyChunk, Failure, Start, encoded
from ostler.server.dialects.ai_sdk.profile import Profile
from ostler.server.dialects.ai_sdk.projection import UiProjection, latest
from ostler.server.dialects.following import Rendering
from ostler.server.dialects.formats import Subject
from ostler.server.dialects.turns import PromptTurn
from ostler.server.sessions.log.feed import Follower
from ostler.server.store.records import StoredEvent
from ostler.wire.events import AnyEvent, PermissionRequested, UnknownEvent, decode_event
from ostler.wire.sessions import PromptReceipt


class TurnStream:
    """Renders a log, from somewhere before the turn on, until the turn ends or has to wait for the client."""

    def __init__(
        self, subject: Subject, profile: Profile, receipt: PromptReceipt, *, after: int, seen: int = 0
    ) -> None:
        self.is_over = False
        self._subject = subject
        self._profile = profile
        self._projection = UiProjection(subject, profile)
        self._turn = PromptTurn(receipt, after=after)
        self._begun = False
        self._seen = seen
        """The sequence up to which the client has the message already; 0 for a message from its beginning."""

    def render(self, events: Sequence[StoredEvent]) -> bytes:
        """The bytes that a few events become."""
        chunks: list[AnyChunk] = []
        for stored in events:
            chunks += self._heard(decode_event(stored.body))
            if self.is_over:
                return b"".join(map(encoded, latest(chunks))) + DONE
        return b"".join(map(encoded, latest(chunks)))

    def _heard(self, event: AnyEvent | UnknownEvent) -> list[AnyChunk]:
        self._turn.feed(event)
        chunks = self._ours(event)
        if self._turn.is_over:
            self.is_over = True
            return chunks if self._begun else self._never()
        return chunks

    def _ours(self, event: AnyEvent | UnknownEvent) -> list[AnyChunk]:
        if self._begun:
            return self._chunks(event)
        start = self._turn.start
        if start is None:
            return []
        self._begun = True
        return self._chunks(start) + ([] if event is start else self._chunks(event))

    def _chunks(self, event: AnyEvent | UnknownEvent) -> list[AnyChunk]:
        chunks: list[AnyChunk] = list(self._projection.feed(event))
        if event.sequence <= self._seen:
            if event.sequence == self._seen:
                self._projection.park()
                return list(self._projection.again())
            return []
        if isinstance(event, PermissionRequested) and self._has_to_wait(event.data.permission_id):
            self.is_over = True
            chunks += self._projection.park()
        return chunks

    def _has_to_wait(self, ask_id: str) -> bool:
        return self._profile.has_approvals and self._profile.is_open(ask_id)

    def _never(self) -> list[AnyChunk]:
        return [
            *self._opening(),
            Failure(error_text="The turn never began: the prompt was taken back, or the session ended."),
        ]

    def cut_off(self) -> bytes:
        """The log goes on without us: the session was deleted, or the server stops."""
        self.is_over = True
        why = Failure(error_text="The stream was cut off: the session was deleted, or the server stops.")
        return b"".join(map(encoded, [*self._opening(), why])) + DONE

    def _opening(self) -> list[AnyChunk]:
        """A stream begins with a start, also one that never gets to its turn."""
        metadata = {"sessionId": self._subject.key}
        return [] if self._begun else [Start(message_id=f"msg_{self._subject.session_id}", message_metadata=metadata)]


class TurnChunks:
    """The bytes of a turn for one client."""

    def __init__(self, follower: Follower, turn: TurnStream, *, heartbeat: float) -> None:
        self._turn = turn
        self._rendering = Rendering(follower, turn.render, heartbeat=heartbeat, is_over=lambda: turn.is_over)

    async def next(self) -> bytes | None:
        """The next bytes to write; None when there will be no more."""
        written = await self._rendering.next()
        return self._turn.cut_off() if written is None and not self._turn.is_over else written
