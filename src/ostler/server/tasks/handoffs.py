"""Letting another agent go on with a session: in its place, or in a new session with the same files."""

import msgspec

from ostler.server.runners.agents import agent_named
from ostler.server.runners.registry import Runners
from ostler.server.sessions import handoff
from ostler.server.sessions.admission import check_choices
from ostler.server.sessions.creation import checked_provider
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.store.acting import next_claim
from ostler.server.tasks.rewind_and_fork import RewindAndFork, Successor
from ostler.wire.sessions import SendMessage
from ostler.wire.tasks import HandoffSession
from ostler.wire.workspaces import ForkSession


async def hand_over(sessions: Sessions, runners: Runners, live: LiveSession, wanted: HandoffSession) -> LiveSession:
    """Let another agent go on; gives the session that it has, or will have at the end of the turn."""
    if wanted.fork:
        return await _fork_for(sessions, runners, live, wanted)
    await _in_place(sessions, runners, live, wanted)
    return live


async def _in_place(sessions: Sessions, runners: Runners, live: LiveSession, wanted: HandoffSession) -> None:
    session = live.core
    claim = next_claim()
    if await sessions.reads.outcome_of(claim) is not None:
        return
    session.refuse_if_over("handoffs")
    live.agent.refuse_if_away()
    agent = await _checked(sessions, runners, session, wanted)
    request = handoff.request
    await live.chores.alone(lambda: request(session, live.agent, wanted, agent, claim), patience=REQUEST_SECONDS)
    await live.turns.go_on()


async def _fork_for(sessions: Sessions, runners: Runners, live: LiveSession, wanted: HandoffSession) -> LiveSession:
    session = live.core
    agent = await _checked(sessions, runners, session, wanted)
    data = handoff.asked_for(session, wanted, agent)
    spec = await handoff.check(session, live.agent, data, wanted)
    forked = await RewindAndFork(sessions, runners).fork(live, ForkSession(), Successor(agent, spec))
    if wanted.message is not None:
        await sessions.send(forked, SendMessage(message=wanted.message))
    return forked


async def _checked(sessions: Sessions, runners: Runners, session: SessionCore, wanted: HandoffSession) -> str:
    """The full name of the agent, if all that is wanted can be."""
    check_choices(SessionChange(model=wanted.model, variant=wanted.variant, mode=wanted.mode))
    if (provider := checked_provider(wanted.provider)) is not None:
        await sessions.admission.check_addresses(msgspec.structs.replace(session.settings, provider=provider))
    return agent_named(runners, wanted.agent).id
