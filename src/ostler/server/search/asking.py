"""What somebody writes into a search box, read: words, phrases in quotes, and filters such as `agent:codex`."""

import re
from typing import get_args

from ostler.base.errors import InvalidRequest
from ostler.server.store.search import Wanted
from ostler.wire.search import Speaker

_ROLES: dict[str, str] = {"me": "user", "agent": "assistant", "thought": "thought", "tool": "tool"}
SPEAKERS: dict[str, Speaker] = {"user": "me", "assistant": "agent", "thought": "thought", "tool": "tool"}
_PIECE = re.compile(r'(?:(?P<name>agent|session|from):)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+))')
_WORD = re.compile(r"[^\W_]")
_FEWEST = 3
"""Letters that the beginning of a word must have; shorter ones are words of their own."""
_MOST_PHRASES = 20


def wanted_of(
    text: str,
    *,
    project: str,
    limit: int,
    before: int | None = None,
    agent: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
) -> Wanted:
    """What to look for; raises InvalidRequest if there is nothing, or too much."""
    filters: dict[str, str | None] = {"agent": agent, "session": session, "from": speaker}
    phrases: list[str] = []
    is_whole = False
    for piece in _PIECE.finditer("".join(each if each.isprintable() else " " for each in text)):
        value = piece["phrase"] if piece["phrase"] is not None else piece["word"]
        if piece["name"] is not None:
            filters[piece["name"]] = value
        elif _WORD.search(value):
            phrases.append(value)
            is_whole = piece["phrase"] is not None or len(value) < _FEWEST
    if not phrases:
        raise _refused("q", f"'{text[:50]}' has no word to look for; write at least one")
    if len(phrases) > _MOST_PHRASES:
        raise _refused("q", f"has {len(phrases)} words; look for at most {_MOST_PHRASES}")
    return Wanted(
        project=project,
        phrases=tuple(phrases),
        is_whole=is_whole,
        limit=limit,
        before=before,
        agent=filters["agent"],
        session=filters["session"],
        role=_role(filters["from"]),
    )


def _role(speaker: str | None) -> str | None:
    if speaker is not None and speaker not in _ROLES:
        raise _refused("from", f"'{speaker[:50]}' is none of {', '.join(get_args(Speaker))}")
    return _ROLES[speaker] if speaker is not None else None


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})
