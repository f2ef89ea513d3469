"""The errors of fleets and of the ways to their followers; part of the table."""

from ostler.base.errors.error import OstlerError


class EventsRefused(OstlerError):
    """Events that a leader reported are not what they should be; none of the request was taken."""

    code, status, title = "events_refused", 422, "Events refused"
    template = "{reason}"
