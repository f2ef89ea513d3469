"""The errors around tenants, projects and API keys; part of the table."""

from ostler.base.errors.error import OstlerError


class NameTaken(OstlerError):
    """The name of a tenant or project is another's."""

    code, status, title = "name_taken", 409, "Name already used"
    template = "There is a {what} '{name}' already. Choose another name."


class LimitReached(OstlerError):
    """A tenant, a project or an actor has as much as its limits allow."""

    code, status, title = "limit_reached", 429, "Limit reached"
    template = "The {scope} '{id}' may have {value} {what} and has {used}. {hint}"
