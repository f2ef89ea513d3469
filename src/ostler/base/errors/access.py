"""The errors around tenants, projects and API keys; part of the table."""

from ostler.base.errors.error import OstlerError


class NameTaken(OstlerError):
    """The name of a tenant or project is another's."""

    code, status, title = "name_taken", 409, "Name already used"
    template = "There is a {what} '{name}' already. Choose another name."
