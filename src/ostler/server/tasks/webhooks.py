"""Tells others that a session has ended, as its task wished."""

import asyncio

import httpx

from ostler.base.logs import Log
from ostler.server.sessions.state import SessionState
from ostler.server.store.records import SessionRecord
from ostler.server.tasks.views import task_session
from ostler.wire.events import SessionStatus
from ostler.wire.tasks import TaskWebhook, WebhookCall

log = Log(__name__)
_TRIES = 3
_FIRST_PAUSE = 1.0
_SECONDS = 10.0
_EVENTS: dict[SessionStatus, str] = {"completed": "session.completed", "failed": "session.failed"}


class Webhooks:
    """Calls addresses beside everything else; what is not done when the server stops is given up."""

    def __init__(self) -> None:
        self._calls: set[asyncio.Task[None]] = set()

    def tell(self, record: SessionRecord, state: SessionState) -> None:
        """The session has ended."""
        task = record.spec.task
        told = {"session.ended", _EVENTS.get(state.status, "session.ended")}
        for webhook in task.webhooks if task is not None else ():
            if webhook.event in told:
                body = WebhookCall(event=webhook.event, session=task_session(record, state))
                call = asyncio.get_running_loop().create_task(_call(webhook, body))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)


async def _call(webhook: TaskWebhook, body: WebhookCall) -> None:
    """Try a few times; an answer other than 2xx counts as none. The address may hold a secret, so it is not logged."""
    headers = {"content-type": "application/json", "user-agent": "ostler", "ostler-event": webhook.event}
    session = body.session.id
    async with httpx.AsyncClient(trust_env=False, timeout=_SECONDS) as client:
        for number in range(_TRIES):
            await asyncio.sleep(number * _FIRST_PAUSE)
            try:
                answer = await client.post(webhook.url, content=body.encoded(), headers=headers)
            except httpx.HTTPError as error:
                log.warning("webhook.failed", session_id=session, told=webhook.event, reason=type(error).__name__)
                continue
            if answer.is_success:
                return
            log.warning("webhook.refused", session_id=session, told=webhook.event, status=answer.status_code)
