"""One finding of `ostler doctor`."""

from typing import Literal

import msgspec


class Check(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was found, and what to do about it."""

    level: Literal["ok", "warn", "fail"]
    found: str
    next_step: str | None = None
