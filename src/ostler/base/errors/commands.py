"""The errors around commands that people start; part of the table."""

from ostler.base.errors.error import OstlerError


class CommandNotFound(OstlerError):
    """No such process; those of a server or runner that was started anew are gone."""

    code, status, title = "process_not_found", 404, "Process not found"
    template = (
        "There is no process '{process}'. List them with GET /v1/processes; they end with their server or runner."
    )


class CommandConflict(OstlerError):
    """The process is not in the state for this, or there are too many."""

    code, status, title = "process_conflict", 409, "Not possible with this process"
    template = "{reason}"
