"""Which asks of an agent are decided without a human: a pure function of the session's state."""

from collections.abc import Sequence

from ostler.server.sessions import drafts
from ostler.server.sessions.state import SessionState, rule_of
from ostler.wire.events import PermissionData, PermissionMode, PermissionStatus, QuestionData
from ostler.wire.running import Answer, Draft, PermissionAnswer

_ASKS = frozenset({"permission.requested", "permission.resolved", "question.requested", "question.resolved"})


def vet(events: Sequence[Draft], state: SessionState, mode: PermissionMode) -> tuple[list[Draft], list[Answer]]:
    """What to write for these events, and which answers to give the agent at once."""
    if not any(draft.type in _ASKS for draft in events):
        return list(events), []
    open_asks = {ask.ask_id for ask in state.asks}
    written: list[Draft] = []
    answers: list[Answer] = []
    for draft in events:
        ask_id = _ask_id(draft)
        if draft.type.endswith(".requested") and ask_id is not None:
            open_asks.add(ask_id)
        elif draft.type.endswith(".resolved") and ask_id not in open_asks:
            continue  # somebody answered it while the agent gave it up
        written.append(draft)
        if isinstance(draft.data, PermissionData) and _needs_nobody(draft, state, mode):
            # bypass is no rule: it ends when the session gets other permissions
            status: PermissionStatus = "accept" if mode == "bypass" else "accept_for_session"
            written.append(drafts.permission_resolved(draft.data, status, None, "policy"))
            answers.append(PermissionAnswer(ask_id=draft.data.permission_id, allow=True))
    return written, answers


def _ask_id(draft: Draft) -> str | None:
    match draft.data:
        case PermissionData(permission_id=ask_id) | QuestionData(question_id=ask_id):
            return str(ask_id)
        case _:
            return None


def _needs_nobody(draft: Draft, state: SessionState, mode: PermissionMode) -> bool:
    if not isinstance(draft.data, PermissionData) or draft.type != "permission.requested":
        return False
    return mode == "bypass" or rule_of(draft.data) in state.always_allowed
