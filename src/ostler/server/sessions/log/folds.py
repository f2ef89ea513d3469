"""Folds of single things that a log tells: what was used, what was changed, and comments."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from ostler.wire.events import FileChangedData, UsageUpdatedData
from ostler.wire.sessions import SessionChanges, SessionUsage
from ostler.wire.workspace_events import Comment, CommentUpdatedData

_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
_DIGITS = 10
"""Sums of money are rounded to this, so that 0.1 and 0.2 make 0.3."""
_DOLLARS = "USD"

MOST_SENT = 100
"""Of those that the agent has; the log has all."""


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event as the fold sees it."""

    session_id: str
    agent: str
    sequence: int
    time: str
    type: str
    data: Any


def used(total: SessionUsage, before: SessionUsage, usage: UsageUpdatedData) -> SessionUsage:
    """The new total: an agent tells what a turn took so far, so that comes on top of what was `before` the turn."""
    counts = {name: getattr(before, name) + count for name, count in _given(usage)}
    if usage.cost is None:
        return replace(total, **counts)
    currency = usage.cost.currency
    spent = round(before.cost.get(currency, 0.0) + usage.cost.amount, _DIGITS)
    return replace(total, **counts, cost={**total.cost, currency: spent})


def since(total: SessionUsage, before: SessionUsage | None) -> tuple[int, float]:
    """The tokens and US dollars that came on top."""
    earlier = before or SessionUsage()
    tokens = total.input_tokens + total.output_tokens - earlier.input_tokens - earlier.output_tokens
    return tokens, round(total.cost.get(_DOLLARS, 0.0) - earlier.cost.get(_DOLLARS, 0.0), _DIGITS)


def _given(usage: UsageUpdatedData) -> Iterator[tuple[str, int]]:
    return ((name, count) for name in _COUNTS if (count := getattr(usage, name)) is not None)


def changed(total: SessionChanges, change: FileChangedData, *, is_new: bool) -> SessionChanges:
    """The new total; `is_new` says whether it is the first change of this file."""
    added, removed = lines_of(change.diff or "")
    return SessionChanges(
        files=total.files + is_new,
        added=total.added + added,
        removed=total.removed + removed,
    )


def lines_of(diff: str) -> tuple[int, int]:
    """How many lines a unified diff adds and removes; the names above its hunks are none."""
    lines = [line for line in diff.split("\n") if not line.startswith(("+++ ", "--- "))]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def comments_after(comments: tuple[Comment, ...], data: CommentUpdatedData) -> tuple[Comment, ...]:
    """The comments after one more event: a changed one stays where it is."""
    newest = data.comment
    if data.removed:
        return tuple(comment for comment in comments if comment.comment_id != newest.comment_id)
    if any(comment.comment_id == newest.comment_id for comment in comments):
        changed = tuple(newest if comment.comment_id == newest.comment_id else comment for comment in comments)
    else:
        changed = (*comments, newest)
    sent = [comment.comment_id for comment in changed if comment.prompt_id is not None]
    forgotten = frozenset(sent[:-MOST_SENT])
    return tuple(comment for comment in changed if comment.comment_id not in forgotten)


def drafts_of(comments: tuple[Comment, ...]) -> tuple[Comment, ...]:
    """Those that the agent does not know of."""
    return tuple(comment for comment in comments if comment.prompt_id is None)
