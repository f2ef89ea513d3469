"""The errors around runners and the link to them; part of the table."""

from ostler.base.errors.error import OstlerError


class RunnerNotFound(OstlerError):
    """No such runner."""

    code, status, title = "runner_not_found", 404, "Runner not found"
    template = "There is no runner '{runner}'. Known runners: {known}."


class RunnerUnavailable(OstlerError):
    """The machine that a session is on cannot be reached now; what runs there goes on."""

    code, status, title = "runner_unavailable", 503, "Runner is not linked"
    template = "The runner '{runner}' is not linked to this server now. Its agents work on; try again in a moment."


class RunnerRemoved(RunnerUnavailable):
    """The machine that a session is on may not come back: somebody removed it from the runners."""

    code, status, title = "runner_removed", 409, "Runner was removed"
    template = (
        "The runner '{runner}', which the session is on, was removed. Send a prompt: the session goes on on another "
        "runner, with the files of its last turn. One that is over can only be read; begin a new session."
    )


class NotPlaced(RunnerUnavailable):
    """The session waits for a runner, so nothing of it is anywhere yet."""

    code, title = "not_placed", "Waits for a runner"
    template = "The session is on no runner yet. Its `placement` says what it waits for; try again when it has begun."


class LinkLost(RunnerUnavailable):
    """The other end of the link is not there any more; what was asked of it may have been done or not."""

    code, title = "link_lost", "Link to the runner lost"
    template = "The link between server and runner is cut: {reason}. Try again when the runner is linked."


class NotTrusted(LinkLost):
    """The two ends of a link do not take each other's certificates, which seldom mends itself soon."""

    code, title = "not_trusted", "Certificate not accepted"


class RunnerRefused(OstlerError):
    """A server does not take a runner, or not any more: its token or key, what it claims, or its version."""

    code, status, title = "runner_refused", 401, "Runner refused"
    template = "{reason}"


class ConversationNotFound(OstlerError):
    """No agent's own program has this conversation on the server's machine."""

    code, status, title = "conversation_not_found", 404, "Conversation not found"
    template = "Agent '{agent}' has no conversation '{conversation}' here. List them with `ostler import`."
