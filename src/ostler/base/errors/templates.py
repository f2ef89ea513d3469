"""The errors around templates; part of the table."""

from ostler.base.errors.error import OstlerError


class TemplateNotFound(OstlerError):
    """No template has this name."""

    code, status, title = "template_not_found", 404, "Template not found"
    template = "There is no template '{name}'. List them with `ostler templates list`."


class RevisionNotFound(OstlerError):
    """A template has no such revision or tag."""

    code, status, title = "revision_not_found", 404, "Revision not found"
    template = (
        "Template '{name}' has no revision or tag '{revision}'; its tags are {known}. "
        "List its revisions with `ostler templates revisions {name}`."
    )


class TemplateInvalid(OstlerError):
    """The files of a template say something that cannot be."""

    code, status, title = "template_invalid", 422, "Template not valid"
    template = "The template was not stored: {first}{more}. Mend the files and push again."
