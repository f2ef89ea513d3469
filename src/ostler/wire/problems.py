"""RFC 7807 problem documents: the one error shape of the API."""

from typing import Any

from ostler.wire.struct import Wire


class Problem(Wire, frozen=True, kw_only=True):
    """What went wrong, with which value, and what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str | None = None
    errors: dict[str, list[str]] | None = None
    """For bad input: what is wrong with each field."""
    details: dict[str, Any] | None = None
