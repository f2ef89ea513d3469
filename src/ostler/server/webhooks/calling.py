"""One try of one call: signed as Standard Webhooks say, to an address that is checked each time, never redirected."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ostler.base import signing
from ostler.base.addresses import AddressRules
from ostler.base.errors import AddressRefused
from ostler.base.logs import never_log
from ostler.server.store.webhooks import CallRow
from ostler.wire.webhooks import NewWebhook, PushKeys

if TYPE_CHECKING:
    import httpx

SECONDS = 15.0
"""So long a receiver may take."""
PAUSES = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18000.0, 28800.0, 28800.0)
"""Between tries; about a day in all."""
_LONGEST_WISH = 28800.0
"""A receiver may ask us to come again later, but not after more than this."""
_ANSWER_BYTES = 2**16
_LONGEST_REASON = 300
GONE = 410
PUSH, PUSH_SECRET = "push:", "vapid_"
"""The address of the notifications of a browser that has not said where."""
_NO_BROWSER = frozenset({404, GONE})


class AskedWith(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """With what somebody asked for the notifications of a browser: they end with it."""

    credential: str | None = None
    """The id of a key or of a sign-in; None for the server's own token, and where none is needed."""
    until: float | None = None
    """When it ends, in seconds since 1970, if that is known."""


class StoredWebhook(NewWebhook, frozen=True, kw_only=True, omit_defaults=True):
    """A webhook as it is stored."""

    push: PushKeys | None = None
    """Of the browser that its calls are for."""
    asked_with: AskedWith | None = None

    @property
    def is_push(self) -> bool:
        """Whether it is of a browser, which may not have subscribed yet."""
        return (self.secret or "").startswith(PUSH_SECRET)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver answered, or why there was no answer."""

    status: int | None = None
    reason: str | None = None
    """None if the call was taken."""
    retry_after: float = 0.0
    is_void: bool = False
    """Nothing is to be called any more, which says nothing about the receiver."""


async def tried(rules: AddressRules, wanted: StoredWebhook, call: CallRow, at: int, content: bytes) -> Outcome:
    """Make a call; what is answered but its status is not read. The address may hold a secret, so it is not logged."""
    import httpx  # noqa: PLC0415 - it would slow every start

    from ostler.base.dialling import checked_client  # noqa: PLC0415 - the same

    never_log(wanted.url, wanted.secret)
    headers, content = _prepared(wanted, call, at, content)
    try:
        async with (
            asyncio.timeout(SECONDS),  # httpx bounds each read, not all of them
            checked_client(rules, field="url", most_bytes=_ANSWER_BYTES, seconds=SECONDS) as client,
            client.stream("POST", wanted.url, content=content, headers=headers) as answer,
        ):
            outcome = _outcome(answer)
            return replace(outcome, status=GONE) if wanted.is_push and outcome.status in _NO_BROWSER else outcome
    except TimeoutError:
        return Outcome(reason=f"it did not answer within {SECONDS:g} seconds")
    except AddressRefused as error:  # the operator may allow it before the next try
        return Outcome(reason=str(error)[:_LONGEST_REASON])
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Outcome(reason=f"it cannot be reached ({type(error).__name__})")


def _prepared(wanted: StoredWebhook, call: CallRow, at: int, content: bytes) -> tuple[dict[str, str], bytes]:
    headers = {"content-type": "application/json", "user-agent": "ostler", "ostler-event": call.type}
    if wanted.push is None:
        return headers | signing.headers(signing.key(wanted.secret), call.id, at, content), content
    from ostler.server.webhooks import pushing  # noqa: PLC0415 - its ciphers would cost every server memory

    headers = pushing.headers((wanted.secret or "").removeprefix(PUSH_SECRET), wanted.url, at)
    return {"user-agent": "ostler", **headers}, pushing.sealed(wanted.push, content)


def _outcome(answer: "httpx.Response") -> Outcome:
    status = answer.status_code
    if answer.is_success:
        return Outcome(status=status)
    reason = f"it answered {status}" + (", and redirects are not followed" if answer.is_redirect else "")
    asked = answer.headers.get("retry-after", "")
    wish = float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 8 else 0.0
    return Outcome(status=status, reason=reason, retry_after=min(wish, _LONGEST_WISH))


def settled(call: CallRow, outcome: Outcome, now: float, spread: Callable[[], float]) -> CallRow:
    """The call after a try: delivered, to be tried again, or given up; `spread` is from 0 to 1."""
    after = replace(call, status=outcome.status, reason=outcome.reason)
    if outcome.reason is None:
        return replace(after, state="delivered")
    if call.tries > len(PAUSES) or outcome.status == GONE or outcome.is_void:
        return replace(after, state="failed")
    pause = max(PAUSES[call.tries - 1] * (1 + spread() / 10), outcome.retry_after)
    return replace(after, due=now + pause)
