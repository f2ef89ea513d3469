"""Takes over conversations that agents' own programs have on this machine."""

import msgspec

from ostler.base.errors import SessionNotFound, UnsupportedAgent
from ostler.base.ids import new_id
from ostler.server.runners.agents import agent_named
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.service import Sessions
from ostler.server.store.acting import new_trace
from ostler.server.store.records import NewSession
from ostler.wire.agents import Conversation, EarlierTalk, EarlierTurn, ImportConversation
from ostler.wire.parts import TextPart
from ostler.wire.running import Draft
from ostler.wire.sessions import CreateSession
from ostler.wire.workspaces import WorkspaceWish


async def importable(sessions: Sessions, runners: Runners, project: str) -> list[Conversation]:
    """The conversations of this machine, each with the session that goes on with it already."""
    found = await runners.runner(runners.home).conversations()
    known = [await _known(sessions, project, each.agent, each.conversation_id) for each in found]
    pairs = zip(found, known, strict=True)
    return [msgspec.structs.replace(each, session_id=session) for each, session in pairs if _has(runners, each.agent)]


async def take_over(
    sessions: Sessions, runners: Runners, project: str, wanted: ImportConversation
) -> tuple[LiveSession, bool]:
    """A session that goes on with a conversation; the one that does so already, if there is one."""
    agent = agent_named(runners, wanted.agent).id
    if (known := await _known(sessions, project, agent, wanted.conversation_id)) is not None:
        return await sessions.registry.live(project, known), False
    runner = runners.runner(runners.home)
    found = await runner.conversation(agent, wanted.conversation_id)
    order = CreateSession(
        agent=agent,
        key=_key(agent, wanted.conversation_id),
        cwd=found.folder,
        title=wanted.title,
        model=wanted.model,
        permission_mode=wanted.permission_mode,
        env=wanted.env,
        provider=wanted.provider,
        workspace=WorkspaceWish(execution_host_id=runners.home),
    )

    async def earlier(new: NewSession) -> list[Draft]:
        talk = await runner.bring(agent, wanted.conversation_id, new.id)
        known = [drafts.info(title=found.title)] if wanted.title is None else []
        return [*known, *_events(wanted.conversation_id, talk)]

    return await sessions.creation.create(project, order, earlier=earlier)


def _has(runners: Runners, agent: str) -> bool:
    try:
        agent_named(runners, agent)
    except UnsupportedAgent:
        return False
    return True


async def _known(sessions: Sessions, project: str, agent: str, conversation_id: str) -> str | None:
    try:
        return (await sessions.registry.find(project, _key(agent, conversation_id))).id
    except SessionNotFound:
        return None


def _key(agent: str, conversation_id: str) -> str:
    """One conversation, one session."""
    return f"{agent}-{conversation_id}"


def _events(conversation_id: str, talk: EarlierTalk) -> list[Draft]:
    """What was said before, as if it had been said here."""
    written = [drafts.native(conversation_id)]
    if talk.omitted:
        turns = "turn was" if talk.omitted == 1 else "turns were"
        left_out = f"The conversation is long: its first {talk.omitted} {turns} left out here. The agent knows them."
        written.append(drafts.warning(left_out, "cut"))
    return [*written, *(event for turn in talk.turns for event in _turn(turn))]


def _turn(turn: EarlierTurn) -> list[Draft]:
    turn_id = new_id("trn")
    events = [
        drafts.turn_started(turn_id, new_trace()),
        *drafts.user_message(new_id("prm"), (TextPart(text=turn.prompt),)),
        *(event for item in turn.items for event in drafts.item(item)),
        drafts.turn_ended(turn_id, "completed", "end_turn"),
    ]
    for event in events:
        event.time = turn.time
    return events
