"""The errors around several servers of one database; part of the table."""

from ostler.base.errors.error import OstlerError


class OwnedElsewhere(OstlerError):
    """Another server has the session, and this request could not be passed on to it."""

    code, status, title = "session_elsewhere", 503, "Session is at another server"
    template = "Another server has {what}, and the request was not passed on to it. Try again in a moment."


class ServerAway(OstlerError):
    """The server that has the session is not there; its agent and its files are on that machine."""

    code, status, title = "server_away", 503, "The session's server is away"
    template = (
        "The server that has {what} ({address}) does not answer. Agents and files are there, and go on when that "
        "server is back. Nothing was changed; try again then. If it will not come back, `ostler runners list` names "
        "its runner, and `ostler runners remove` gives that up: its sessions go on elsewhere."
    )


class RelayBroken(OstlerError):
    """The server that has the session broke off in the middle of an answer."""

    code, status, title = "relay_broken", 502, "The session's server broke off"
    template = (
        "The server that has {what} broke off before it answered; what was asked may have been done. "
        "Look at it, or send the request again with the same Idempotency-Key."
    )
