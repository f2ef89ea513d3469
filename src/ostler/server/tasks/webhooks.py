"""Tells others that a session has ended, as its task wished: at least once, also after a crash."""

import asyncio
import time
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from ostler.base import signing
from ostler.base.addresses import AddressRules
from ostler.base.errors import AddressRefused, OstlerError
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.base.tasks import Background
from ostler.server.sessions.log.state import TERMINAL, SessionState
from ostler.server.sessions.secrets import keep_secret
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.settings import settings_now
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionRecord
from ostler.server.tasks.views import session_view
from ostler.wire.events import SessionStatus
from ostler.wire.sessions import WebhookCall
from ostler.wire.tasks import TaskWebhook

if TYPE_CHECKING:
    import httpx

log = Log(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 3600.0
_PATIENCE_SECONDS = 86400.0
"""It is tried for a day, and from the beginning again in a new server."""
_SECONDS = 10.0
_ALL_SECONDS = 30.0
_ANSWER_BYTES = 2**16
_STOP_SECONDS = 5.0
_EVENTS: dict[SessionStatus, str] = {"completed": "session.completed", "failed": "session.failed"}


class Webhooks:
    """Calls addresses beside everything else; the store has a row for each call until it was made."""

    def __init__(self, store: Store, rules: AddressRules, secret: str | None) -> None:
        self._store = store
        self._rules = rules
        self._secret = secret
        self._background = Background(log, "webhook.crashed")

    def tell(self, record: SessionRecord, state: SessionState) -> None:
        """The session has ended."""
        task = record.task
        self._begin(record, state, range(len(task.webhooks)) if task is not None else ())

    async def resume(self, sessions: Sessions) -> None:
        """Make the calls that an earlier server did not come to; before other sessions can end."""
        for record, numbers in await self._store.uncalled_webhooks(TERMINAL):
            self._begin(record, sessions.state_of(record)[0], sorted(numbers))

    async def close(self) -> None:
        """Leave what is not done to the next server."""
        await self._background.aclose(seconds=_STOP_SECONDS)

    def _begin(self, record: SessionRecord, state: SessionState, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._background.spawn(self._see_to(record, state, number), session_id=record.id)

    async def _see_to(self, record: SessionRecord, state: SessionState, number: int) -> None:
        """Make one call, unless it is about another end, and forget it."""
        webhooks = record.task.webhooks if record.task is not None else ()
        webhook = webhooks[number]
        keep_secret(settings_now(record, state))
        if webhook.event in {"session.ended", _EVENTS.get(state.status)}:
            session = session_view(record, state, record.last_sequence, record.updated_at)
            body = WebhookCall(id=f"{record.id}-{number}", event=webhook.event, session=session)
            secret = signing.key(webhook.secret or self._secret)
            await _call(webhook, body, self._rules, secret)
        try:
            await self._store.forget_webhook(record.id, record.epoch, number)
        except OstlerError as error:  # it is called once more by the next server
            log.warning("webhook.not_forgotten", session_id=record.id, reason=str(error))


async def _call(webhook: TaskWebhook, body: WebhookCall, rules: AddressRules, secret: bytes | None) -> None:
    """Try until somebody listens; an answer other than 2xx counts as none, and what it says is not read.

    The address may hold a secret, so it is not logged.
    """
    from ostler.base.dialling import checked_client  # noqa: PLC0415 - it would slow every start

    session, content = body.session.id, body.encoded()
    async with checked_client(rules, field="webhooks", most_bytes=_ANSWER_BYTES, seconds=_SECONDS) as client:
        for pause in chain([0.0], delays(_FIRST_PAUSE, _LONGEST_PAUSE, within=_PATIENCE_SECONDS)):
            await asyncio.sleep(pause)
            headers = _headers(webhook, body.id, content, secret)
            if (reason := await _try(client, webhook.url, content, headers)) is None:
                return
            log.warning("webhook.failed", session_id=session, about=webhook.event, reason=reason)
    log.error("webhook.given_up", session_id=session, about=webhook.event)


def _headers(webhook: TaskWebhook, name: str, content: bytes, secret: bytes | None) -> dict[str, str]:
    common = {
        "content-type": "application/json",
        "user-agent": "ostler",
        "ostler-event": webhook.event,
        "ostler-delivery": name,
    }
    return common | signing.headers(secret, name, int(time.time()), content)


async def _try(client: "httpx.AsyncClient", url: str, content: bytes, headers: dict[str, str]) -> str | None:
    """Call once; gives why it was in vain."""
    import httpx  # noqa: PLC0415 - it would slow every start

    try:
        async with (
            asyncio.timeout(_ALL_SECONDS),
            client.stream("POST", url, content=content, headers=headers) as answer,
        ):
            return None if answer.is_success else f"it answers {answer.status_code}"
    except AddressRefused as error:  # the operator may allow it before the next try
        return str(error)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        return type(error).__name__
