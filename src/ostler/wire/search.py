"""What was said in sessions, as a search finds it."""

from typing import Literal

from ostler.wire.struct import Answer

Speaker = Literal["me", "agent", "thought", "tool"]
"""Who said something: a person, the agent, the agent to itself, or a tool that it used."""


class SearchHit(Answer, frozen=True, kw_only=True):
    """One message, thought, tool call or result that has what was looked for."""

    session_id: str
    session_key: str
    title: str | None
    agent: str
    speaker: Speaker
    sequence: int
    """The event that it began with."""
    time: str
    excerpt: str
    """The part around the first match, in one line."""
    marks: tuple[tuple[int, int], ...]
    """Where the matches in the excerpt begin and end, in characters."""


class SearchResults(Answer, frozen=True, kw_only=True):
    """The newest first."""

    items: tuple[SearchHit, ...]
    has_more: bool
    next_before: int | None
    """Give it as `before` for the next page."""
    is_complete: bool
    """False while the index has not yet taken in all that was said."""
