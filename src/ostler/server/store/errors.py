"""What a store refuses; callers know what it means for a client."""

from ostler.base.errors import OstlerError, StoreUnavailable


class Refused(Exception):
    """Something was not written, and nothing else was harmed by it."""


class KeyTaken(Refused):
    """Another session of the project has the key."""


class ClaimTaken(Refused):
    """The act that a request claimed was done by another server meanwhile."""


class StaleOwner(StoreUnavailable):
    """Another server has claimed the session since, or it is deleted: who writes does not have it any more."""

    def __init__(self, session_id: str) -> None:
        super().__init__(reason=f"another server has session {session_id}")


class NotCopied(OstlerError):
    """A store could not be moved; the target is as it was."""

    code, status, title = "not_copied", 409, "Not copied"
    template = "Nothing was copied: {reason}"
