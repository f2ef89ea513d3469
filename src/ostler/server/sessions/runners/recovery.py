"""What an earlier server or link left on a runner: agents that worked on, and sessions in the middle of something."""

import asyncio
from collections.abc import Collection

from ostler.base.errors import AgentLost
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.undo import undone_by
from ostler.link.protocol import Runner
from ostler.server.sessions import drafts
from ostler.server.sessions.continuing import answer_of
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.reads import transcript_of
from ostler.server.sessions.log.state import SessionState, is_waited_for, state_in
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.log.transcript import Transcript
from ostler.server.sessions.registry import Registry
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.chores import is_due
from ostler.server.store.protocol import Store
from ostler.wire.events import ErrorData
from ostler.wire.items import Item
from ostler.wire.parts import PromptPart
from ostler.wire.running import Connected, Draft, ProcessRef, Prompt
from ostler.wire.sessions import Turn

log = Log(__name__)
_REASON = "server_restarted"
_BACK = "The link to the runner '{}' is back."
_CONTINUES = "The agent was lost: {} A new process goes on with the turn."
_MESSAGE = "prm"


class Recovery:
    """Goes on with the sessions of one runner, once, when it is linked: the one of this process at its start."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        runner_id: str,
        runner: Runner,
        *,
        was_cut: bool,
        continuing: Collection[str],
    ) -> None:
        """`was_cut` says that its machine stopped while a server had the sessions: its files may be gone.

        `continuing` are the agents whose next process goes on with a turn.
        """
        self._store = store
        self._registry = registry
        self._runner_id = runner_id
        self._runner = runner
        self._was_cut = was_cut
        self._continuing = continuing
        self._surviving: dict[str, ProcessRef] = {}
        self._leases = Leases()
        self._lives: list[LiveSession] = []

    async def prepare(self) -> None:
        """Look what is there, and have the sessions in memory that are about to be gone on with."""
        if self._registry.live_on(self._runner_id):  # what an earlier link brought may be on its way to the disk
            await self._store.settled()
        self._surviving = {process.session_id: process for process in await self._runner.surviving()}

        def is_wanted(session_id: str, state: bytes) -> bool:
            return session_id in self._surviving or needs_recovery(state_in(state))

        with undone_by(self._leases.end):
            self._lives = await self._registry.load_for(self._leases, self._runner_id, TERMINAL, is_wanted)

    async def run(self) -> None:
        """Take over the agents that are still there, and go on with what was begun."""
        with self._leases:
            for live in self._registry.live_on(self._runner_id):
                if (
                    live not in self._lives or live.core.state.ended
                ):  # nothing was under way, but a prompt may have come
                    live.agent.regain_runner()
                    live.core.background.spawn(live.turns.go_on())
            going_on = [live for live in self._lives if not live.core.state.ended and not live.core.log.is_deleted]
            outcomes = await asyncio.gather(*map(self._recover, going_on))
        if lost := next(filter(None, outcomes), None):
            raise lost
        await asyncio.gather(*map(self._runner.discard, self._surviving.values()))

    async def _recover(self, live: LiveSession) -> RunnerUnavailable | None:
        try:
            await self._take_over(live, self._surviving.pop(live.core.id, None))
        except RunnerUnavailable as error:
            return error
        except Exception as error:  # one session must not keep all others from their server
            log.error("session.not_recovered", session_id=live.core.id, exc_info=error)
        return None

    async def _take_over(self, live: LiveSession, survivor: ProcessRef | None) -> None:
        session = live.core
        if session.is_ending:  # somebody stops it, and found no process to end
            if survivor is not None:
                await self._runner.discard(survivor)
            live.agent.regain_runner()
            return
        turn = session.state.turn  # an agent that is adopted may end it at once, and the next one may begin
        lost = AgentLost(reason="the machine stopped while it was there.") if self._was_cut else None
        found: Connected | None = None
        if survivor is not None:
            async with live.agent.adopting:
                adopted = await self._adopt(live, survivor)
            lost, found = (adopted, None) if isinstance(adopted, AgentLost) else (lost, adopted)
        if (
            session.log.is_deleted or session.is_ending or session.state.ended
        ):  # meanwhile, by somebody who found no process
            await live.agent.disconnect(force=True)
            live.agent.regain_runner()
            return
        transcript = await transcript_of(self._store, session.id, turn.first_sequence - 1 if turn else session.last)
        log.info("session.recovered", session_id=session.id, status=session.state.status, adopted=found is not None)
        if live.agent.was_lost:
            await session.note([drafts.on_runner(_BACK.format(session.record.runner_name), "back")])
        live.agent.regain_runner()
        if found is None and turn is not None and self._continues(session, transcript, lost):
            why = lost or AgentLost(reason="its process is gone.")
            await session.note([drafts.warning(_CONTINUES.format(why.fields["reason"]), "turn_continues")])
            live.turns.go_on_after(why, turn.turn_id, rebooted=lost is not None)
            return
        await _go_on(live, found, turn, transcript, lost=lost)

    def _continues(self, session: SessionCore, transcript: Transcript, lost: AgentLost | None) -> bool:
        """Whether a new process goes on with what the one that is gone had begun."""
        has_begun = lost is not None or bool(session.state.asks) or _has_answered(transcript)
        return session.state.status == "running" and session.record.agent in self._continuing and has_begun

    async def _adopt(self, live: LiveSession, survivor: ProcessRef) -> Connected | AgentLost:
        session = live.core
        known = await self._store.logs.last_step(session.id, survivor.start)
        try:
            found = await live.agent.adopt(self._runner, survivor, known=known)
        except RunnerUnavailable:
            raise
        except Exception as error:  # whatever is wrong with it: the session can go on with a new process
            log.error("session.not_adopted", session_id=session.id, exc_info=error)
            await self._runner.discard(survivor)
            return error if isinstance(error, AgentLost) else AgentLost(reason="it could not be gone on with.")
        for ask_id in _unheard(session, found):
            ask = await self._store.logs.find_ask(session.id, ask_id)
            if ask is not None and (answer := answer_of(ask)) is not None:
                await live.agent.tell(answer)
        return found


def needs_recovery(state: SessionState) -> bool:
    """Whether a session was in the middle of something."""
    busy = state.turn is not None or bool(state.asks) or bool(state.queue) or state.handoff is not None
    return busy or is_due(state) or is_waited_for(state.limit) or state.status in {"pausing", "resuming", "stopping"}


async def _go_on(
    live: LiveSession,
    found: Connected | None,
    turn: Turn | None,
    transcript: Transcript,
    *,
    lost: AgentLost | None,
) -> None:
    """Do what the earlier server would have done next; the transcript begins with the turn that was under way then.

    `lost` says why nobody knows what the agent heard and did, unless its process was found and has heard.
    """
    if found is not None:
        await _catch_up(live, found, turn, transcript)
    await _go_on_with_turn(live, found, turn, transcript, lost=lost)
    match live.core.state.status:
        case "pausing":
            await live.lifecycle.finish_pause()
        case "resuming":
            await live.lifecycle.finish_resume()
        case "stopping":
            await live.lifecycle.finish_stop()
        case _:
            await live.turns.go_on()
            if live.core.state.turn is None:
                live.agent.rest()


async def _catch_up(live: LiveSession, found: Connected, turn: Turn | None, transcript: Transcript) -> None:
    """The agent heard more than was written down."""
    written = {message.item.item_id for message in transcript.messages()}
    for prompt in found.steered:
        if turn is not None and prompt.turn_id == turn.turn_id and f"itm_{prompt.prompt_id}" not in written:
            await live.turns.take_up(prompt)


async def _go_on_with_turn(
    live: LiveSession,
    found: Connected | None,
    turn: Turn | None,
    transcript: Transcript,
    *,
    lost: AgentLost | None,
) -> None:
    state, prompt = live.core.state, _prompt_of(turn, transcript)
    if found is not None and (prompt is None or prompt.prompt_id in found.heard):
        return
    if lost is not None or state.asks or _has_answered(transcript):
        if closed := given_up(state, transcript.open_items(), lost or AgentLost(reason="its process is gone.")):
            await live.core.log.append(closed)
    elif prompt is not None:
        live.turns.begin_turn(prompt)  # the agent never heard of it


def _has_answered(transcript: Transcript) -> bool:
    """Whether the agent did anything in the turn under way."""
    return any(message.item.role != "user" for message in transcript.messages())


def _prompt_of(turn: Turn | None, transcript: Transcript) -> Prompt | None:
    """What the turn was begun with."""
    if turn is None:
        return None
    prefix = f"itm_{_MESSAGE}_"
    for message in transcript.messages():
        if message.item.role == "user" and message.item.item_id.startswith(prefix):
            parts = tuple(part for part in message.item.content if isinstance(part, PromptPart))
            return Prompt(prompt_id=message.item.item_id[4:], turn_id=turn.turn_id, parts=parts)
    return None


def _unheard(session: SessionCore, found: Connected) -> list[str]:
    """Asks that were decided, but the agent still waits for them."""
    still_open = {ask.ask_id for ask in session.state.asks}
    return [ask_id for ask_id in found.open_asks if ask_id not in still_open]


def given_up(state: SessionState, open_items: list[Item], lost: AgentLost, reason: str = _REASON) -> list[Draft]:
    """Close a turn honestly when its agent is lost."""
    asks = drafts.asks_dropped(state.asks, reason)
    if state.turn is None:
        return asks
    error = Draft("error", ErrorData(message=str(lost), code=reason), source="daemon", synthetic=True)
    items = [drafts.item_failed(item) for item in open_items]
    return [*items, *asks, error, drafts.turn_ended(state.turn.turn_id, "interrupted", reason)]
