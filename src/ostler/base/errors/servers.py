"""The errors around several servers of one database; part of the table."""

from ostler.base.errors.error import OstlerError


class OwnedElsewhere(OstlerError):
    """Another server has the session, and this request could not be passed on to it."""

    code, status, title = "session_elsewhere", 503, "Session is at another server"
    template = "Another server has session '{session}', and the request was not passed on to it. Try again in a moment."


class ServerAway(OstlerError):
    """The server that has the session is not there; its agent and its files are on that machine."""

    code, status, title = "server_away", 503, "The session's server is away"
    template = (
        "The server that has session '{session}' ({address}) does not answer. Its agent and its files are there, and "
        "it goes on when that server is back. Nothing was changed; try again then."
    )


class RelayBroken(OstlerError):
    """The server that has the session broke off in the middle of an answer."""

    code, status, title = "relay_broken", 502, "The session's server broke off"
    template = (
        "The server that has session '{session}' broke off before it answered; what was asked may have been done. "
        "Look at the session, or send the request again with the same Idempotency-Key."
    )
