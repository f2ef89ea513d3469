"""The errors of what cannot be done in the middle of a turn, or between two; part of the table."""

from ostler.base.errors.error import OstlerError


class TurnUnderWay(OstlerError):
    """The agent is at work, and its process cannot be ended without ending the turn."""

    code, status, title = "turn_under_way", 409, "A turn is under way"
    template = (
        "Session '{session}' is working on turn {turn}. Wait for its end, interrupt it, or restart with `force`, "
        "which ends the turn."
    )


class NotWaiting(OstlerError):
    """There is no limit whose end the session waits for, or it has just gone on."""

    code, status, title = "not_waiting", 409, "The session does not wait"
    template = "Session '{session}' does not wait for the end of a limit. Send it a prompt to go on with it."
