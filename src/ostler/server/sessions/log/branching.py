"""Which turns lead to where a conversation stands, and which a rewind left behind."""

from collections.abc import Sequence

from ostler.server.sessions.log.state import SessionState
from ostler.wire.sessions import Turn


def turn_before(turn: Turn) -> int:
    """The number of the turn that a turn goes on from; 0 is the beginning."""
    return turn.number - 1 if turn.after is None else turn.after


def spans_left_behind(branching: Sequence[Turn], state: SessionState) -> list[tuple[int, int]]:
    """The numbers of the turns that do not lead to where the conversation stands, as spans with both ends.

    `branching` are the turns that go on from another one than the one before them, in order.
    """
    head = state.stands_at
    spans = [(head + 1, state.turn_count)]
    for turn in reversed(branching):
        if turn.number <= head:
            head = turn_before(turn)
            spans.append((head + 1, turn.number - 1))
    return [span for span in spans if span[0] <= span[1]]
