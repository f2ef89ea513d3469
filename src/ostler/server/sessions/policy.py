"""Which asks of an agent are decided without a human: a pure function of the session's state."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

import msgspec

from ostler.server.sessions import drafts
from ostler.server.sessions.log.state import SessionState, rule_of
from ostler.server.sessions.proposing import Proposed, as_proposed
from ostler.wire.events import (
    PermissionData,
    PermissionMode,
    PermissionRule,
    PermissionStatus,
    QuestionData,
    RulePermission,
)
from ostler.wire.running import Answer, Draft, PermissionAnswer

STRICTNESS: tuple[RulePermission, ...] = ("deny", "ask", "allow")
PLANNING = (
    "The session's permission mode is plan: only reading is allowed. Propose this in your plan. It can be done when "
    "the plan is approved or the session gets another permission mode."
)
_ASKS = frozenset({"permission.requested", "permission.resolved", "question.requested", "question.resolved"})
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_READING = {
    "read",
    "view",
    "cat",
    "open",
    "grep",
    "search",
    "glob",
    "find",
    "ls",
    "list",
    "fetch",
    "webfetch",
    "websearch",
}
_CHANGING = {"write", "edit", "patch", "create", "replace", "apply", "delete", "remove", "rm", "move", "rename", "mv"}
_UNKNOWN = {"bash", "shell", "exec", "execute", "run", "command", "terminal", "mcp"}
"""What these do depends on what they are given."""


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of a permission without anybody being asked."""

    status: PermissionStatus
    message: str | None = None


def vet(
    events: Sequence[Draft],
    state: SessionState,
    mode: PermissionMode,
    rules: Sequence[PermissionRule] = (),
    proposals: Mapping[str, Proposed | str] = MappingProxyType({}),
) -> tuple[list[Draft], list[Answer]]:
    """What to write for these events, and which answers to give the agent at once."""
    if not any(draft.type in _ASKS for draft in events):
        return list(events), []
    open_asks = {ask.ask_id for ask in state.asks}
    written: list[Draft] = []
    answers: list[Answer] = []
    for draft in (as_proposed(each, proposals) if each.type == "permission.requested" else each for each in events):
        ask_id = _ask_id(draft)
        if draft.type.endswith(".requested") and ask_id is not None:
            open_asks.add(ask_id)
        elif draft.type.endswith(".resolved") and ask_id not in open_asks:
            continue  # somebody answered it while the agent gave it up
        written.append(draft)
        verdict = _verdict(draft, state, mode, rules, proposals)
        if isinstance(draft.data, PermissionData) and verdict is not None:
            written.append(drafts.permission_resolved(draft.data, verdict.status, verdict.message, "policy"))
            answers.append(_answer(draft.data, verdict))
    return written, answers


def approves_plan(asked: QuestionData, answers: tuple[tuple[str, ...], ...] | None) -> bool:
    """Whether these answers let the agent carry out the plan that it asks about; the first option is the yes."""
    is_plan = (asked.metadata or {}).get("kind") == "plan"
    return is_plan and answers is not None and answers == (asked.options[:1],)


def _ask_id(draft: Draft) -> str | None:
    match draft.data:
        case PermissionData(permission_id=ask_id) | QuestionData(question_id=ask_id):
            return str(ask_id)
        case _:
            return None


def _verdict(
    draft: Draft,
    state: SessionState,
    mode: PermissionMode,
    rules: Sequence[PermissionRule],
    proposals: Mapping[str, Proposed | str],
) -> Verdict | None:
    """None if a human decides."""
    if not isinstance(draft.data, PermissionData) or draft.type != "permission.requested":
        return None
    if (proposed := proposals.get(draft.data.permission_id)) is not None:
        return Verdict("reject", proposed) if isinstance(proposed, str) else None
    return _ruled_verdict(draft.data, state, mode, rules)


def _ruled_verdict(
    asked: PermissionData, state: SessionState, mode: PermissionMode, rules: Sequence[PermissionRule]
) -> Verdict | None:
    if mode == "plan" and not _only_reads(asked):
        return Verdict("reject", PLANNING)
    ruled = _ruled(asked, rules) or ("allow" if mode == "bypass" else None)
    match ruled:
        case "deny":
            return Verdict("reject", f"A rule of the session forbids {asked.tool or asked.action}.")
        case "allow":
            return Verdict("accept")  # not for the session: it ends when the session gets other permissions
        case "ask":
            return None
        case None:
            return Verdict("accept_for_session") if rule_of(asked) in state.always_allowed else None


def _ruled(asked: PermissionData, rules: Sequence[PermissionRule]) -> RulePermission | None:
    """The strictest of the rules that fit, whatever their order; one without a tool is known by what it is to do."""
    name = asked.tool or asked.action
    found = {rule.permission for rule in rules if fnmatchcase(name, rule.pattern)}
    return next((each for each in STRICTNESS if each in found), None)


def _only_reads(asked: PermissionData) -> bool:
    """Judged by the tool's name; a tool that we cannot judge may change something."""
    words = {word.lower() for word in _WORDS.findall(asked.tool or "")}
    return bool(words & _READING) and not words & (_CHANGING | _UNKNOWN)


def _answer(asked: PermissionData, verdict: Verdict) -> PermissionAnswer:
    return PermissionAnswer(ask_id=asked.permission_id, allow=verdict.status != "reject", message=verdict.message)
