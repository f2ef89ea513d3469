"""Deliveries at work: each begins one task, or is told to one session, however often a server is killed.

What a delivery leads to is stored under its id, so that a job that is done twice leads to nothing twice. Deliveries of
one chain are told in the order they came: the job of each looks after those before it.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ostler.base.errors import OstlerError
from ostler.base.errors.servers import OwnedElsewhere
from ostler.server.engine.protocol import NotDone, Retry, Work
from ostler.server.runners.placement import agent_anywhere
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import Leases
from ostler.server.sessions.service import Sessions
from ostler.server.store.acting import begin_claims
from ostler.server.store.records import Job
from ostler.server.store.triggers import DeliveryJob, DeliveryRow, TriggerRow
from ostler.server.tasks.orders import session_of, spec_of
from ostler.server.templates.applying import filled, task_of, with_template
from ostler.server.templates.service import found
from ostler.server.triggers.mapping import Event, LiquidFault, Words, words_of
from ostler.wire.sessions import CreateSession, SendMessage
from ostler.wire.tasks import CreateTask
from ostler.wire.triggers import NewTrigger

LABEL = "trigger"
"""The label of a session that says which trigger began it."""
LINE_LABEL = "trigger-line"
"""The label that says which triggers led to it, if that were several."""
_WITHIN = 3 * 24 * 3600.0
_FEWEST_TRIES = 8
"""So often it is tried, however old it is: the server may have been off for days."""
_LATER = 429
"""The project has as much as it may have; a delivery waits until there is room."""
_JOB_SECONDS = 120.0
_LONGEST_KEY = 128
"""Of a session."""
_body = msgspec.json.Decoder(NewTrigger).decode
_event = msgspec.json.Decoder(Event).decode
_job = msgspec.json.Decoder(DeliveryJob).decode


class Deliveries:
    """Acts on deliveries."""

    def __init__(self, sessions: Sessions, runners: Runners) -> None:
        self._rows = sessions.store.triggers
        self._sessions = sessions
        self._runners = runners
        self._chains: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @property
    def work(self) -> Work:
        """How an engine does it."""
        return Work(run=self._do, retry=Retry(first=1.0, longest=60.0, within=_WITHIN), seconds=_JOB_SECONDS)

    async def _do(self, job: Job) -> None:
        row = await self._rows.delivery(_job(job.body).delivery)
        trigger = await self._rows.named(row.trigger_id) if row is not None else None
        if row is None or trigger is None or row.state != "waiting":
            return
        with Leases():
            if row.chain is None:
                await self._act(trigger, row, job)
                return
            async with self._chains.setdefault((trigger.id, row.chain), asyncio.Lock()):
                for each in await self._rows.waiting(row):
                    await self._act(trigger, each, job)

    async def _act(self, trigger: TriggerRow, row: DeliveryRow, job: Job) -> None:
        try:
            session = await self._led_to(trigger, _body(trigger.body), row)
        except LiquidFault as fault:
            await self._rows.settle(replace(row, state="failed", reason=str(fault)))
        except OstlerError as error:
            is_passing = error.status >= 500 or error.status == _LATER or isinstance(error, OwnedElsewhere)
            if is_passing and (job.age < _WITHIN or job.tries < _FEWEST_TRIES):
                raise NotDone(str(error)) from error
            await self._rows.settle(replace(row, state="failed", reason=str(error)))
        else:
            await self._rows.settle(replace(row, state="started", session=session))

    async def _led_to(self, trigger: TriggerRow, body: NewTrigger, row: DeliveryRow) -> str:
        """The session that a delivery begins, or goes to."""
        begin_claims(f"delivery {row.id}")
        event = _event(row.body)
        templates = self._sessions.store.templates
        definition = (await found(templates, trigger.project, body.template))[1] if body.template is not None else None
        words = await asyncio.to_thread(words_of, body, event, definition)
        if body.session_policy == "fixed":
            live = await self._sessions.registry.live(trigger.project, body.session or "")
            message = SendMessage(message=words.whole_prompt(words.prompt or "", trigger.name))
            await self._sessions.send(live, message)
            return live.core.record.id
        if body.session_policy == "mapped":
            return await self._prompted(trigger, body, row, words)
        return await self._begun(trigger, body, row, words)

    async def _prompted(self, trigger: TriggerRow, body: NewTrigger, row: DeliveryRow, words: Words) -> str:
        """A prompt for the session of the key, which is made for its first."""
        templates = self._sessions.store.templates
        template = await filled(templates, trigger.project, body.template or "", words.inputs, "")
        wanted = CreateSession(
            key=_key(trigger, row.chain or ""), title=f"{trigger.name} {row.chain}"[:200], labels=_labels(trigger, row)
        )
        session = with_template(wanted, template, ())
        live, _ = await self._sessions.creation.create(trigger.project, session)
        message = SendMessage(message=words.whole_prompt(words.prompt or template.prompt, trigger.name))
        await self._sessions.send(live, message)
        return live.core.record.id

    async def _begun(self, trigger: TriggerRow, body: NewTrigger, row: DeliveryRow, words: Words) -> str:
        """A task of its own."""
        known = await self._sessions.store.find_session(trigger.project, row.id)
        if known is not None:  # a server was killed between the task and this; its machine may be away with it
            return known.id
        templates = self._sessions.store.templates
        labels = _labels(trigger, row)
        task = CreateTask(template=body.template, inputs=words.inputs, prompt=words.prompt, labels=labels)
        order = await task_of(templates, trigger.project, task, ())
        order = replace(order, prompt=words.whole_prompt(order.prompt or "", trigger.name))
        agent = await agent_anywhere(self._runners, order.worker.type)
        live, _ = await self._sessions.creation.create(
            trigger.project, replace(session_of(order, agent), key=row.id), spec_of(order)
        )
        return live.core.record.id


def _key(trigger: TriggerRow, chain: str) -> str:
    """What the session of a chain is called; those of long keys that begin alike are told apart too."""
    whole = f"{trigger.id}:{chain}"
    return whole if len(whole) <= _LONGEST_KEY else f"{trigger.id}:{hashlib.sha256(chain.encode()).hexdigest()}"


def _labels(trigger: TriggerRow, row: DeliveryRow) -> dict[str, str]:
    """What a session says of the triggers that led to it."""
    line = _event(row.body).line
    return {LABEL: trigger.name, **({LINE_LABEL: " ".join([*line, trigger.name])} if line else {})}


def line_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The triggers that led to a session with these labels."""
    return tuple(labels.get(LINE_LABEL, labels.get(LABEL, "")).split())
