"""Tells others that a session has ended or reached a limit, as its task wished: at least once, also after a crash."""

import time
from typing import TYPE_CHECKING

import msgspec

from ostler.base import signing
from ostler.base.addresses import AddressRules
from ostler.base.errors import AddressRefused
from ostler.base.logs import never_log
from ostler.server.engine.protocol import NotDone, Retry, Work
from ostler.server.sessions.log.state import SessionState, state_in
from ostler.server.store.protocol import Store
from ostler.server.store.records import Job, NewJob, SessionRecord, encode
from ostler.server.tasks.views import session_view
from ostler.wire.events import SessionStatus
from ostler.wire.sessions import Session, WebhookCall
from ostler.wire.tasks import TaskWebhook

if TYPE_CHECKING:
    import httpx

KIND = "webhook"
_SECONDS = 10.0
_ALL_SECONDS = 30.0
_ANSWER_BYTES = 2**16
_EVENTS: dict[SessionStatus, str] = {"completed": "session.completed", "failed": "session.failed"}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a call until it was made."""

    id: str
    event: str
    url: str
    content: str
    secret: str | None = None


class _Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A call as earlier versions stored it: it has to be made of its session."""

    project: str
    session: str


def jobs_at_end(record: SessionRecord, state: SessionState, last: int, updated_at: str) -> list[NewJob]:
    """The calls that the end of a session asks for, or the limit that it has reached."""
    if record.task is None or not record.task.webhooks:
        return []
    session = session_view(record, state, last, updated_at)
    events = {"session.ended", _EVENTS.get(state.status)} if state.ended else {"session.limit"}
    occasion = "" if state.ended else f"-{last}"
    names = {f"{record.id}-{number}{occasion}": webhook for number, webhook in enumerate(record.task.webhooks)}
    return [
        NewJob(key=f"webhook-{name}", kind=KIND, body=encode(_call(webhook, name, session)))
        for name, webhook in names.items()
        if webhook.event in events
    ]


def _call(webhook: TaskWebhook, name: str, session: Session) -> Call:
    content = WebhookCall(id=name, event=webhook.event, session=session).encoded().decode()
    return Call(id=name, event=webhook.event, url=webhook.url, content=content, secret=webhook.secret)


class Webhooks:
    """Makes calls."""

    def __init__(self, store: Store, rules: AddressRules, secret: str | None) -> None:
        self._store = store
        self._rules = rules
        self._secret = secret

    @property
    def work(self) -> Work:
        """How an engine does it."""
        return Work(run=self._call, retry=Retry(first=1.0, longest=3600.0, within=86400.0), seconds=_ALL_SECONDS)

    async def _call(self, job: Job) -> None:
        """Make one call; an answer other than 2xx counts as none, and what it says is not read.

        The address may hold a secret, so it is not logged.
        """
        from ostler.base.dialling import checked_client  # noqa: PLC0415 - it would slow every start

        if (call := await self._found(job)) is None:
            return
        never_log(call.url, call.secret)
        content, secret = call.content.encode(), signing.key(call.secret or self._secret)
        async with checked_client(self._rules, field="webhooks", most_bytes=_ANSWER_BYTES, seconds=_SECONDS) as client:
            await _try(client, call.url, content, _headers(call, content, secret))

    async def _found(self, job: Job) -> Call | None:
        """What is to be called, if anybody still wants to hear it."""
        try:
            return msgspec.json.decode(job.body, type=Call)
        except msgspec.ValidationError:
            owed = msgspec.json.decode(job.body, type=_Owed)
        record = await self._store.find_session(owed.project, owed.session)
        if record is None:
            return None
        made = jobs_at_end(record, state_in(record.state), record.last_sequence, record.updated_at)
        return next((msgspec.json.decode(new.body, type=Call) for new in made if new.key == job.key), None)


def _headers(call: Call, content: bytes, secret: bytes | None) -> dict[str, str]:
    common = {
        "content-type": "application/json",
        "user-agent": "ostler",
        "ostler-event": call.event,
        "ostler-delivery": call.id,
    }
    return common | signing.headers(secret, call.id, int(time.time()), content)


async def _try(client: "httpx.AsyncClient", url: str, content: bytes, headers: dict[str, str]) -> None:
    import httpx  # noqa: PLC0415 - it would slow every start

    try:
        async with client.stream("POST", url, content=content, headers=headers) as answer:
            if not answer.is_success:
                raise NotDone(f"it answers {answer.status_code}")
    except AddressRefused as error:  # the operator may allow it before the next try
        raise NotDone(str(error)) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotDone(type(error).__name__) from None
