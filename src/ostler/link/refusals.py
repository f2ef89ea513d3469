"""What a runner makes of an answer that is no yes: the word of a server counts, that of anybody in between does not."""

from contextlib import suppress

import msgspec

from ostler.base.errors.runners import LinkLost, RunnerRefused
from ostler.wire.problems import Problem

_OURS = "urn:ostler:error:"
_FINAL = frozenset(range(400, 500)) - {408, 425, 429}
"""Statuses that will not become better by waiting."""


def refusal(server: str, status: int, body: bytes) -> LinkLost | RunnerRefused:
    """RunnerRefused if a server of ours said so; anything else may be a proxy, and is tried again."""
    with suppress(msgspec.MsgspecError):
        problem = msgspec.json.decode(body, type=Problem)
        if problem.type.startswith(_OURS):
            kind = RunnerRefused if status in _FINAL else LinkLost
            return kind(reason=problem.detail)
    return LinkLost(reason=f"{server} answered with {status}, and not as an Ostler server does")
