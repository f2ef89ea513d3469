"""What a runner makes of an answer that is no yes: the word of a server counts, that of anybody in between does not."""

from contextlib import suppress

import msgspec

from ostler.base.errors.runners import LinkLost, NotTrusted, RunnerRefused
from ostler.base.tls.contexts import Trust
from ostler.base.tls.faults import fault_of
from ostler.wire.problems import Problem

_OURS = "urn:ostler:error:"
_FINAL = frozenset(range(400, 500)) - {408, 425, 429}
"""Statuses that will not become better by waiting."""


def lost(server: str, error: BaseException, trust: Trust | None, *, broke: bool) -> LinkLost:
    """Why a server could not be reached; `broke` if it was there and ended the connection."""
    if trust is not None and (fault := fault_of(error, server, trust.ca_file)) is not None:
        return NotTrusted(reason=fault)
    if broke and trust is not None and trust.shown is not None:  # the server's words do not reach us
        usual = f"as it does with a certificate that has expired or is of an authority not known there: {trust.shown}"
        return LinkLost(reason=f"{server} ended the connection without a word, {usual}")
    if broke and trust is None:
        hint = "If it speaks TLS, begin the address with https://"
        return LinkLost(reason=f"{server} ended the connection without an answer. {hint}")
    return LinkLost(reason=str(error) or type(error).__name__)


def refusal(server: str, status: int, body: bytes) -> LinkLost | RunnerRefused:
    """RunnerRefused if a server of ours said so; anything else may be a proxy, and is tried again."""
    with suppress(msgspec.MsgspecError):
        problem = msgspec.json.decode(body, type=Problem)
        if problem.type.startswith(_OURS):
            kind = RunnerRefused if status in _FINAL else LinkLost
            return kind(reason=problem.detail)
    return LinkLost(reason=f"{server} answered with {status}, and not as an Ostler server does")
