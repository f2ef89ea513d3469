"""The errors around saved prompts; part of the table."""

from ostler.base.errors.error import OstlerError


class PromptNotFound(OstlerError):
    """No prompt was saved under this name."""

    code, status, title = "prompt_not_found", 404, "Saved prompt not found"
    template = "There is no saved prompt '{name}'. List them with `ostler prompts list`."


class PromptExists(OstlerError):
    """The name of a saved prompt is another's."""

    code, status, title = "prompt_exists", 409, "Name already used"
    template = "There is a saved prompt '{name}' already. Choose another name, or edit that one."


class TooManyPrompts(OstlerError):
    """A project has as many saved prompts as it may have."""

    code, status, title = "too_many_prompts", 409, "Too many saved prompts"
    template = "There are {most} saved prompts already, and no more are kept. Remove one that nobody uses."
