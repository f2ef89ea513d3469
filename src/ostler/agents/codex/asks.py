"""What Codex waits for: commands, patches, rights, MCP tools, questions; and the plans that we ask about ourselves."""

from typing import Any, Literal

from ostler.agents.asks import Waiting, asked, permission_asked, plan_asked, wishes
from ostler.agents.codex import frames
from ostler.agents.codex.items import Place, diff_of, script, use_of
from ostler.agents.codex.thread import FileChange, McpToolCall
from ostler.wire.events import PermissionData, Question, QuestionOption
from ostler.wire.running import PermissionAnswer, QuestionAnswer

GO_ON = "The plan is approved. Implement it."
_KEEP_PLANNING = "The user rejected the plan. Stay in plan mode and revise it."


class Ask(Waiting, frozen=True, kw_only=True):
    """Something that waits for a human."""

    kind: Literal["command", "file", "rights", "mcp", "question", "plan"]
    request_id: int | str
    thread_id: str
    native: str = ""
    """The item it is about."""
    wanted: Any = None
    """The rights it wants, or the native ids of its questions."""


def command(ask_id: str, place: Place, request_id: int | str, wanted: frames.CommandApproval) -> Ask:
    """May this command run?"""
    text = script(wanted.command or "")
    rule = " ".join(wanted.proposed_execpolicy_amendment or ()) or text
    metadata: dict[str, Any] = {
        "input": {"command": text, "cwd": wanted.cwd},
        "always": f"exec_command({rule})",
        **_explained(wanted.reason),
    }
    data = permission_asked(ask_id, f"exec_command: {text}", "exec_command", place.item_id, metadata)
    native = wanted.item_id
    return Ask(kind="command", request_id=request_id, thread_id=wanted.thread_id, native=native, data=data)


def patch(
    ask_id: str, place: Place, request_id: int | str, wanted: frames.FileApproval, item: FileChange | None, cwd: str
) -> Ask:
    """May this patch be applied?"""
    changes = item.changes if item else ()
    metadata: dict[str, Any] = {
        "input": use_of(item).arguments if item else {"root": wanted.grant_root},
        "diff": diff_of(changes, cwd),
        "always": "apply_patch",
        **_explained(wanted.reason),
    }
    names = ", ".join(change.path for change in changes) or wanted.grant_root or "files"
    data = permission_asked(ask_id, f"apply_patch: {names}", "apply_patch", place.item_id, metadata)
    return Ask(kind="file", request_id=request_id, thread_id=wanted.thread_id, data=data)


def rights(ask_id: str, place: Place, request_id: int | str, wanted: frames.ProfileApproval) -> Ask:
    """May it have these rights for the rest of the turn?"""
    metadata = {"input": wanted.permissions, **_explained(wanted.reason)}
    data = permission_asked(ask_id, "request_permissions", "request_permissions", place.item_id, metadata)
    held = wanted.permissions
    return Ask(kind="rights", request_id=request_id, thread_id=wanted.thread_id, data=data, wanted=held)


def mcp_tool(
    ask_id: str, place: Place, request_id: int | str, wanted: frames.Elicitation, item: McpToolCall | None
) -> Ask:
    """May this tool of an MCP server run?"""
    tool = use_of(item).name if item else f"mcp__{wanted.server_name}"
    arguments = wanted.meta.tool_params if wanted.meta else None
    metadata = {"input": arguments, "always": tool, "explanation": wanted.message}
    data = permission_asked(ask_id, tool, tool, place.item_id, metadata)
    return Ask(kind="mcp", request_id=request_id, thread_id=wanted.thread_id, data=data)


def question(ask_id: str, place: Place, request_id: int | str, wanted: frames.UserInput) -> Ask:
    """The model's questions."""
    questions = tuple(
        Question(
            question=one.question,
            options=tuple(QuestionOption(label=it.label, description=it.description) for it in one.options or ()),
            multi_select=False,
            free_text=one.is_other or not one.options,
            header=one.header,
        )
        for one in wanted.questions
    )
    data = asked(ask_id, questions, place.item_id)
    ids = tuple(one.id for one in wanted.questions)
    return Ask(kind="question", request_id=request_id, thread_id=wanted.thread_id, data=data, wanted=ids)


def plan_approval(ask_id: str, thread_id: str, plan: str) -> Ask:
    """May it do what it proposes? Codex has ended its turn and waits for no response."""
    return Ask(kind="plan", request_id="plan", thread_id=thread_id, data=plan_asked(ask_id, plan))


def reply(ask: Ask, answer: PermissionAnswer | QuestionAnswer) -> Any:
    """The decision as Codex wants it; it never hears that something is allowed for longer than once."""
    if isinstance(answer, QuestionAnswer):
        chosen = zip(ask.wanted, answer.answers or (), strict=False)
        return {"answers": {native: {"answers": list(texts)} for native, texts in chosen}}
    if ask.kind == "mcp":
        return {"action": "accept", "content": {}} if answer.allow else {"action": "decline"}
    if ask.kind == "rights":
        return {"permissions": ask.wanted if answer.allow else {}, "scope": "turn"}
    return {"decision": "accept" if answer.allow else "decline"}


def refusal(ask: Ask, answer: PermissionAnswer | QuestionAnswer) -> str | None:
    """What the model should hear about a no; Codex itself has no place for reasons."""
    declined = not answer.allow if isinstance(answer, PermissionAnswer) else answer.answers is None
    if not declined or answer.withdrawn or not answer.message:
        return None
    what = "rejected this" if isinstance(answer, PermissionAnswer) else "declined to answer"
    subject = f" ({ask.data.action})" if isinstance(ask.data, PermissionData) else ""
    return f"The user {what}{subject}: {answer.message}"


def another_plan(answer: PermissionAnswer | QuestionAnswer) -> str | None:
    """What to say for a better plan, or None if there is nothing to go on with."""
    wanted = [] if answer.withdrawn else wishes(answer)
    return "\n".join([_KEEP_PLANNING, *wanted]) if wanted else None


def _explained(reason: str | None) -> dict[str, str]:
    return {"explanation": reason} if reason else {}
