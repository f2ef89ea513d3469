"""The base of every error that Ostler raises on purpose."""

from typing import Any, ClassVar


class OstlerError(Exception):
    """Base of our own errors; subclasses are the table that the API, the CLI and the docs are made from."""

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, *, errors: dict[str, list[str]] | None = None, **fields: Any) -> None:
        self.fields = fields
        self.errors = errors
        super().__init__(self.template.format(**fields))
