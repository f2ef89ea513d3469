"""Handing a session over: another agent takes the next turn, with the same files and what was said so far.

What is wanted is in the log first, and done between two turns; so a server that ends meanwhile leaves it to the next.
"""

from msgspec.structs import replace

from ostler.base.errors import OstlerError, Unprocessable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.ids import new_id
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.creation import checked_provider
from ostler.server.sessions.session import SessionCore
from ostler.server.store.acting import acting, current_trace, deed
from ostler.server.store.records import Done, Placed, SessionSpec
from ostler.wire.items import QueueEntry
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider
from ostler.wire.running import Draft
from ostler.wire.sessions import TurnLimits
from ostler.wire.tasks import HandoffSession
from ostler.wire.workspace_events import SessionHandoffData


def asked_for(session: SessionCore, wanted: HandoffSession, agent: str) -> SessionHandoffData:
    """What is wanted, as the log tells it; raises if the agent has the session already."""
    if agent == session.record.agent:
        reason = f"'{agent}' has session '{session.id}' already"
        hint = "Name another agent; to change how this one works, PATCH the session."
        raise Unprocessable(reason=f"agent: {reason}. {hint}", errors={"agent": [reason]})
    if wanted.message is not None and not wanted.message.strip():
        reason = "must not be empty"
        hint = "Leave it out to say nothing yet."
        raise Unprocessable(reason=f"message: {reason}. {hint}", errors={"message": [reason]})
    return SessionHandoffData(
        status="requested",
        from_agent=session.record.agent,
        to_agent=agent,
        model=wanted.model,
        variant=wanted.variant,
        mode=wanted.mode,
        permission_mode=wanted.permission_mode,
    )


def spec_for(session: SessionCore, wanted: SessionHandoffData, provider: Provider | None) -> SessionSpec:
    """How the new agent is started: what was chosen for it, and of the old one's what means the same to all."""
    now = session.settings
    return replace(
        now,
        model=wanted.model,
        variant=wanted.variant,
        mode=wanted.mode,
        permission_mode=wanted.permission_mode or now.permission_mode,
        limits=TurnLimits(),
        temperature=None,
        tools=None,
        client_tools=(),
        code_tools=(),
        system_prompt=None,
        provider=provider or now.provider,
        next_provider=None,
        task=replace(now.task, agent_version=None) if now.task is not None else None,
    )


async def check(
    session: SessionCore, agent: SessionAgent, data: SessionHandoffData, wanted: HandoffSession
) -> SessionSpec:
    """Raise if the new agent could never be started here; gives what it would be started with."""
    spec = spec_for(session, data, checked_provider(wanted.provider))
    try:
        await agent.check(data.to_agent, spec)
    except Unprocessable as error:
        if wanted.provider is not None or spec.provider is None:
            raise
        hint = "The session has a model provider of its own; name one for the new agent in `provider`."
        raise Unprocessable(reason=f"{error} {hint}", errors={"provider": [str(error)]}) from error
    return spec


async def request(
    session: SessionCore, agent: SessionAgent, wanted: HandoffSession, name: str, claim: str | None
) -> None:
    """Write down that another agent is to take the next turn, and the message that it begins with."""
    if name == session.record.agent and (pending := session.state.handoff) is not None:
        await _drop(session, pending, f"it was to be {pending.to_agent}, which was taken back.", done(claim))
        return
    data = asked_for(session, wanted, name)
    spec = await check(session, agent, data, wanted)
    session.refuse_if_over("handoffs")  # it may have ended while the runner was asked
    provider = spec.provider if wanted.provider is not None else None
    placed = Placed(session.record.runner, replace(session.record.spec, next_provider=provider))
    written = deed(drafts.handoff(data), *_queued(session, wanted.message))
    await session.log.append(written, done=done(claim), placed=placed)
    session.rewrite(spec=replace(session.record.spec, next_provider=provider))


def _queued(session: SessionCore, message: str | None) -> list[Draft]:
    """The message for the new agent, before those that wait."""
    if message is None:
        return []
    entry = QueueEntry(
        prompt_id=new_id("prm"),
        parts=(TextPart(text=message),),
        queued_at=session.now(),
        actor=acting(),
        trace_id=current_trace(),
    )
    return [drafts.queue((entry, *session.state.queue))]


async def finish(session: SessionCore, agent: SessionAgent) -> None:
    """Give the session to the agent that was asked for; between two turns, and while none can begin."""
    wanted = session.state.handoff
    if wanted is None:
        return
    spec = spec_for(session, wanted, session.record.spec.next_provider)
    try:
        await agent.check(wanted.to_agent, spec)
    except RunnerUnavailable:
        raise
    except OstlerError as error:  # it could be when that was asked for
        await _drop(session, wanted, str(error))
        return
    await agent.disconnect(force=False)  # first, or a crash would leave an agent that nobody has
    done = replace(wanted, status="done")
    placed = Placed(session.record.runner, spec, wanted.to_agent)
    await session.log.append([drafts.handoff(done)], placed=placed)
    session.rewrite(agent=wanted.to_agent, spec=spec)


def done(claim: str | None) -> Done | None:
    """That what a request claimed is done."""
    return Done(claim, b"") if claim is not None else None


async def _drop(session: SessionCore, wanted: SessionHandoffData, reason: str, done: Done | None = None) -> None:
    dropped = replace(wanted, status="dropped", reason=reason)
    await session.log.append(deed(drafts.handoff(dropped)), done=done)
