"""Folds what a log tells of comments on the files of a session."""

from ostler.wire.workspace_events import Comment, CommentUpdatedData

MOST_SENT = 100
"""Of those that the agent has; the log has all."""


def after(comments: tuple[Comment, ...], data: CommentUpdatedData) -> tuple[Comment, ...]:
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
