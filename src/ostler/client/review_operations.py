"""The operations on comments; `task_operations.py` has those on the files they are about."""

from typing import Literal

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.wire.delivery import AddComment, ChangeComment, CommentList, CommentView, SendComments
from ostler.wire.sessions import PromptReceipt
from ostler.wire.workspace_events import CommentSide

_comment = msgspec.json.Decoder(CommentView).decode


def _place(session: str, rest: str = "") -> str:
    return f"/sessions/{segment(session)}/comments{rest}"


def list_comments(session: str) -> Call[CommentList]:
    """The comments on its files, with the numbers that their lines have now."""
    return get(_place(session), msgspec.json.Decoder(CommentList).decode)


def add_comment(
    session: str,
    path: str,
    text: str,
    *,
    start_line: int | None = None,
    end_line: int | None = None,
    side: CommentSide = "new",
    quote: tuple[str, ...] | None = None,
    old: str = "base",
) -> Call[CommentView]:
    """Comment on lines of a file, or on the whole of it; the agent hears of it when the comments are sent."""
    wanted = AddComment(path=path, text=text, side=side, start_line=start_line, end_line=end_line, quote=quote, old=old)
    return post(_place(session), _comment, wanted)


def change_comment(session: str, comment: str, text: str) -> Call[CommentView]:
    """Let a comment that was not sent yet say something else."""
    return patch(_place(session, f"/{segment(comment)}"), _comment, ChangeComment(text=text))


def remove_comment(session: str, comment: str) -> Call[None]:
    """Forget a comment."""
    return delete(_place(session, f"/{segment(comment)}"))


def send_comments(
    session: str,
    message: str | None = None,
    *,
    comments: tuple[str, ...] | None = None,
    when_busy: Literal["queue", "interrupt", "reject"] = "queue",
) -> Call[PromptReceipt]:
    """Send comments to the agent as one prompt; all that it does not know of by default."""
    wanted = SendComments(message=message, comments=comments, when_busy=when_busy)
    return post(_place(session, "/send"), msgspec.json.Decoder(PromptReceipt).decode, wanted)
