"""The consolidated stream of one execution for one client."""

from collections.abc import Sequence

import msgspec

from ostler.server.dialects.conversation import LeftBehind
from ostler.server.dialects.formats import Subject
from ostler.server.dialects.workflow.projection import Message, WorkflowProjection
from ostler.server.store.records import StoredEvent
from ostler.wire.events import SessionEnded, decode_event


class WorkflowStream:
    """Renders a log from the beginning of a turn on; what the client has already is not sent again."""

    def __init__(self, subject: Subject, *, quiet_until: int, past: LeftBehind) -> None:
        self._projection = WorkflowProjection(subject)
        self._quiet_until = quiet_until
        self._past = past
        self._ended = False

    def is_over(self) -> bool:
        """Whether the execution has ended."""
        return self._ended

    def render(self, events: Sequence[StoredEvent]) -> bytes:
        """The bytes that a few events become."""
        written = []
        for stored in events:
            event = decode_event(stored.body)
            messages = self._projection.feed(event)
            self._ended = self._ended or isinstance(event, SessionEnded)
            if stored.number > self._quiet_until and stored.number not in self._past:
                written += [_frame(stored.number, message) for message in messages]
        return b"".join(written)


def _frame(number: int, message: Message) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (number, message.event.encode(), msgspec.json.encode(message.data))
