"""What an agent asks of people: the first one to decide wins, the second one hears what was decided."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from ostler.base.errors import AskNotFound, AskResolved
from ostler.base.ids import new_id
from ostler.server.sessions import drafts
from ostler.server.sessions.admission import check_rules
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.answers import check_answers
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.policy import approves_plan
from ostler.server.sessions.proposing import POLICY, PROPOSAL, Propose, Proposed, with_rules
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.acting import deed
from ostler.wire.events import PermissionData, PermissionStatus
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer
from ostler.wire.sessions import Ask, PermissionReply

_OUTCOMES: dict[PermissionReply, PermissionStatus] = {
    "once": "accept",
    "always": "accept_for_session",
    "reject": "reject",
}


Confirm = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Makes in a project what was proposed."""


class Asks:
    """The asks of one session."""

    def __init__(
        self, session: SessionCore, agent: SessionAgent, reads: Reads, propose: Propose, confirm: Confirm
    ) -> None:
        self._session = session
        self._agent = agent
        self._reads = reads
        self._propose = propose
        self._confirm = confirm
        self._deciding = asyncio.Lock()

    async def read_proposal(self, project: str, wanted: dict[str, Any]) -> Proposed:
        """What the agent proposes; raises if it could not be made."""
        proposed = await self._propose(project, wanted)
        self._check_policy(proposed.proposal)
        return proposed

    async def propose(self, action: str, proposal: dict[str, Any]) -> Ask:
        """Ask people whether something that goes beyond the session is to be made; no rule decides that."""
        self._check_policy(proposal)
        self._session.refuse_if_over("proposals")
        await self._session.refuse_if_full()
        ask_id = new_id("prp")
        await self._session.log.append(deed(drafts.proposed(ask_id, action, {PROPOSAL: proposal})))
        return await self._known(ask_id)

    async def reply_permission(self, ask_id: str, reply: PermissionReply, message: str | None) -> Ask:
        """Decide a permission."""
        asked = await self._open_permission(ask_id)
        if PROPOSAL in (asked.metadata or {}):
            async with self._deciding:  # who comes second hears what the first one decided
                return await self._decide_proposal(ask_id, reply, message)
        decided = drafts.permission_resolved(asked, _OUTCOMES[reply], message, "user")
        await self._session.log.append(deed(decided))
        await self._agent.tell(PermissionAnswer(ask_id=ask_id, allow=reply != "reject", message=message))
        return await self._known(ask_id)

    async def _open_permission(self, ask_id: str) -> PermissionData:
        ask = self._session.state.open_ask(ask_id)
        if ask is None or ask.permission is None:
            raise await self._why_not_open(ask_id, "permission")
        return ask.permission

    async def _decide_proposal(self, ask_id: str, reply: PermissionReply, message: str | None) -> Ask:
        """What is accepted is there before the answer is: what cannot be made leaves the ask open."""
        asked = await self._open_permission(ask_id)
        if reply != "reject":
            await self._make((asked.metadata or {})[PROPOSAL])
            asked = await self._open_permission(ask_id)  # the agent may have given it up meanwhile
        outcome: PermissionStatus = "reject" if reply == "reject" else "accept"
        await self._session.log.append(deed(drafts.permission_resolved(asked, outcome, message, "user")))
        if asked.item_id is not None:  # the agent waits for it in a call of its own
            await self._agent.tell(PermissionAnswer(ask_id=ask_id, allow=reply != "reject", message=message))
        return await self._known(ask_id)

    async def _make(self, proposal: dict[str, Any]) -> None:
        if proposal["kind"] == POLICY:
            await self._hold(proposal)
        else:
            await self._confirm(self._session.record.project, proposal)

    def _check_policy(self, proposal: dict[str, Any]) -> None:
        """Raise for rules that could not hold in this session."""
        if proposal["kind"] == POLICY:
            check_rules(self._session.permission_mode, with_rules(self._session.record.spec.permission_rules, proposal))

    async def _hold(self, proposal: dict[str, Any]) -> None:
        """The session has these rules from now on; they are ours to apply, so its agent goes on as it is."""
        session = self._session
        rules = with_rules(session.record.spec.permission_rules, proposal)
        check_rules(session.permission_mode, rules)
        spec = replace(session.record.spec, permission_rules=rules)
        await self._reads.store.update_spec(session.id, session.record.epoch, spec)
        session.rewrite(spec=spec)

    async def answer_question(
        self, ask_id: str, answers: tuple[tuple[str, ...], ...] | None, message: str | None
    ) -> Ask:
        """Answer a question, or decline with None."""
        ask = self._session.state.open_ask(ask_id)
        if ask is None or ask.question is None:
            raise await self._why_not_open(ask_id, "question")
        if answers is not None:
            check_answers(ask.question, answers)
        decided: list[Draft] = [drafts.question_resolved(ask.question, answers, "user", message)]
        if approves_plan(ask.question, answers) and self._session.permission_mode == "plan":
            decided.append(drafts.settings(SessionChange(permission_mode="default")))
        await self._session.log.append(deed(*decided))
        await self._agent.tell(QuestionAnswer(ask_id=ask_id, answers=answers, message=message))
        return await self._known(ask_id)

    async def _why_not_open(self, ask_id: str, kind: str) -> AskNotFound | AskResolved:
        await self._reads.store.settled()  # the winner's answer may still be on its way to the disk
        for ask in await self._reads.known_asks(self._session.id, [ask_id]):
            if ask.kind == kind:
                return AskResolved(kind=kind, ask=ask_id, outcome=_outcome(ask))
        return AskNotFound(session=self._session.id, kind=kind, ask=ask_id)

    async def _known(self, ask_id: str) -> Ask:
        """The ask as it is known by now."""
        found = await self._reads.known_asks(self._session.id, [ask_id])
        if not found:
            raise AskNotFound(session=self._session.id, kind="ask", ask=ask_id)
        return found[0]


def _outcome(ask: Ask) -> str:
    if ask.question is not None and ask.question.response is not None:
        return f"answered with '{ask.question.response}'"
    return {"accept": "allowed once", "accept_for_session": "allowed for the session", "reject": "rejected"}.get(
        ask.status, ask.status
    )
