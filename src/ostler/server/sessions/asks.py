"""What an agent asks of people: the first one to decide wins, the second one hears what was decided."""

from ostler.base.errors import AskNotFound, AskResolved
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.answers import check_answers
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.policy import approves_plan
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.acting import deed
from ostler.wire.events import PermissionStatus
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer
from ostler.wire.sessions import Ask, PermissionReply

_OUTCOMES: dict[PermissionReply, PermissionStatus] = {
    "once": "accept",
    "always": "accept_for_session",
    "reject": "reject",
}


class Asks:
    """The asks of one session."""

    def __init__(self, session: SessionCore, agent: SessionAgent, reads: Reads) -> None:
        self._session = session
        self._agent = agent
        self._reads = reads

    async def reply_permission(self, ask_id: str, reply: PermissionReply, message: str | None) -> Ask:
        """Decide a permission."""
        ask = self._session.state.open_ask(ask_id)
        if ask is None or ask.permission is None:
            raise await self._why_not_open(ask_id, "permission")
        decided = drafts.permission_resolved(ask.permission, _OUTCOMES[reply], message, "user")
        await self._session.log.append(deed(decided))
        await self._agent.tell(PermissionAnswer(ask_id=ask_id, allow=reply != "reject", message=message))
        return await self._decided(ask)

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
        return await self._decided(ask)

    async def _why_not_open(self, ask_id: str, kind: str) -> AskNotFound | AskResolved:
        await self._reads.store.settled()  # the winner's answer may still be on its way to the disk
        for ask in await self._reads.known_asks(self._session.id, [ask_id]):
            if ask.kind == kind:
                return AskResolved(kind=kind, ask=ask_id, outcome=_outcome(ask))
        return AskNotFound(session=self._session.id, kind=kind, ask=ask_id)

    async def _decided(self, ask: Ask) -> Ask:
        """The ask as it is known by now."""
        found = await self._reads.known_asks(self._session.id, [ask.ask_id])
        if not found:
            raise AskNotFound(session=self._session.id, kind="ask", ask=ask.ask_id)
        return found[0]


def _outcome(ask: Ask) -> str:
    if ask.question is not None and ask.question.response is not None:
        return f"answered with '{ask.question.response}'"
    return {"accept": "allowed once", "accept_for_session": "allowed for the session", "reject": "rejected"}.get(
        ask.status, ask.status
    )
