"""The conversation as it is now, in a log that keeps everything.

A rewind leaves turns behind. Views of the conversation (chat histories, what ACP replays, the formats of other
protocols) do not tell them; views of the log (its pages and streams, flat lines, the daemon API) do, and tell the
rewind too. A reader that is there when a rewind happens has heard what it heard.
"""

from bisect import bisect_right
from collections.abc import Iterable

from ostler.server.sessions.log.branching import spans_left_behind
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord
from ostler.wire.sessions import Turn


class LeftBehind:
    """The sequences of events that are no longer part of the conversation."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        spans = sorted((turn.first_sequence, turn.last_sequence or turn.first_sequence) for turn in turns)
        self._firsts = [first for first, _ in spans]
        self._lasts = [last for _, last in spans]

    def __contains__(self, sequence: int) -> bool:
        place = bisect_right(self._firsts, sequence) - 1
        return place >= 0 and sequence <= self._lasts[place]


async def left_behind(sessions: Sessions, record: SessionRecord) -> LeftBehind:
    """What a rewind took out of the conversation of a session."""
    return LeftBehind(await turns_left_behind(sessions, record))


async def turns_left_behind(sessions: Sessions, record: SessionRecord) -> list[Turn]:
    """The turns that do not lead to where the conversation stands."""
    state, *_ = sessions.registry.state_of(record)  # asked first, so that every turn that it knows is stored
    spans = spans_left_behind(await sessions.store.logs.branching_turns(record.id), state)
    return await sessions.store.logs.turns_within(record.id, spans) if spans else []
