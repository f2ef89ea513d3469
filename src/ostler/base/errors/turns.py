"""The errors of what cannot be done in the middle of a turn; part of the table."""

from ostler.base.errors.error import OstlerError


class TurnUnderWay(OstlerError):
    """The agent is at work, and its process cannot be ended without ending the turn."""

    code, status, title = "turn_under_way", 409, "A turn is under way"
    template = (
        "Session '{session}' is working on turn {turn}. Wait for its end, interrupt it, or restart with `force`, "
        "which ends the turn."
    )
