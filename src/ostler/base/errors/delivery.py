"""The errors of reviewing a result and handing it over that a person has to settle; part of the table."""

from ostler.base.errors.error import OstlerError


class DeliveryConflict(OstlerError):
    """Files of the local checkout were changed where the result changes them too."""

    code, status, title = "delivery_conflict", 409, "Would overwrite changes"
    template = (
        "Nothing was changed in {folder}: these files differ there from what the session began with: {files}. "
        "Commit, move or undo those changes, or deliver a branch or a patch instead."
    )


class MergeRefused(OstlerError):
    """The forge does not merge the pull request as it is."""

    code, status, title = "merge_refused", 409, "Not merged"
    template = "The pull request was not merged: {reason}"


class CommentNotFound(OstlerError):
    """The session has no such comment."""

    code, status, title = "comment_not_found", 404, "Comment not found"
    template = "Session '{session}' has no comment '{comment}'. List them with `ostler comments list {session}`."


class CommentRefused(OstlerError):
    """There is no place for the comment, or nothing can be done with it."""

    code, status, title = "comment_refused", 422, "Comment refused"
    template = "{reason}"
