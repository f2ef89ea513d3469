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


class LinkLost(RunnerUnavailable):
    """The other end of the link is not there any more; what was asked of it may have been done or not."""

    code, title = "link_lost", "Link to the runner lost"
    template = "The link between server and runner is cut: {reason}. Try again when the runner is linked."


class RunnerRefused(OstlerError):
    """A server does not take a runner, or not any more: its token or key, what it claims, or its version."""

    code, status, title = "runner_refused", 401, "Runner refused"
    template = "{reason}"
