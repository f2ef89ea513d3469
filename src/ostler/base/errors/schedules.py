"""The errors around schedules; part of the table."""

from ostler.base.errors.error import OstlerError


class ScheduleNotFound(OstlerError):
    """No schedule has this id or name."""

    code, status, title = "schedule_not_found", 404, "Schedule not found"
    template = "There is no schedule '{name}'. List them with `ostler schedules list`."


class ScheduleExists(OstlerError):
    """The name of a schedule is another's."""

    code, status, title = "schedule_exists", 409, "Name already used"
    template = "There is a schedule '{name}' already. Choose another name, or edit that one."
