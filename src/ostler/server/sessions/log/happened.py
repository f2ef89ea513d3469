"""One event as what is folded from a log sees it."""

from typing import Any

import msgspec


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event as the fold sees it."""

    session_id: str
    agent: str
    sequence: int
    time: str
    type: str
    data: Any
