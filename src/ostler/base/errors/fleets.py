"""The errors of fleets and of the ways to their followers; part of the table."""

from ostler.base.errors.error import OstlerError


class EventsRefused(OstlerError):
    """Events that a leader reported are not what they should be; none of the request was taken."""

    code, status, title = "events_refused", 422, "Events refused"
    template = "{reason}"


class FollowerAway(OstlerError):
    """The follower does not listen at the relay."""

    code, status, title = "follower_away", 503, "Follower away"
    template = "'{host}' does not listen in session '{session}'. Start `ostler follower` there, then try again."


class FollowerTaken(OstlerError):
    """Another follower of the session listens by this name."""

    code, status, title = "follower_taken", 409, "Name taken"
    template = "Another follower of session '{session}' has the name '{host}'. Choose another one (--name)."


class TooManyPeers(OstlerError):
    """A session has as many peers at its proxy as it may have."""

    code, status, title = "too_many_peers", 409, "Too many peers"
    template = "Session '{session}' has {most} peers already. End some that are not needed."


class SocksOff(OstlerError):
    """The server has no SOCKS proxy."""

    code, status, title = "socks_off", 409, "No SOCKS proxy"
    template = "This server has no SOCKS proxy. Start it with --socks-port, or use the relay."


class OverlayFailed(OstlerError):
    """An overlay network gave no key."""

    code, status, title = "overlay_failed", 502, "No overlay key"
    template = "{provider} gave no key: {reason}. Look at its address and token in the settings of the server."
