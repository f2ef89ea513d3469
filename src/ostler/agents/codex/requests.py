"""What Codex requests of its client: decisions of people, which we pass on, and services, which we do not offer."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Unreadable
from ostler.agents.codex import asks, frames
from ostler.agents.codex.state import State
from ostler.agents.codex.thread import FileChange, Frame, McpToolCall
from ostler.agents.jsonrpc import Incoming
from ostler.wire.events import AgentUnparsedData
from ostler.wire.running import Draft, PermissionAnswer

Outputs = Sequence[Output]
RequestId = int | str
NOT_OFFERED = -32601
_APPROVAL = "mcp_tool_call"


def on_request(state: State, request_id: RequestId, incoming: Incoming) -> Outputs:
    """Ask people, or refuse: a request without any answer would keep Codex waiting."""
    method = incoming.method or ""
    if method in REFUSED:
        return [state.calls.refuse(request_id, NOT_OFFERED, REFUSED[method])]
    found = REQUESTS.get(method)
    if found is None:
        return _unknown(state, request_id, Unreadable(f"Codex requested '{method}', which is unknown", "$.method"))
    try:
        wanted = say.read(incoming.params, found.decoder)
    except Unreadable as error:
        return _unknown(state, request_id, error)
    return found.handle(state, request_id, wanted)


def _unknown(state: State, request_id: RequestId, error: Unreadable) -> Outputs:
    data = AgentUnparsedData(error=str(error), location=error.location)
    refusal = state.calls.refuse(request_id, NOT_OFFERED, "Ostler does not know this request.")
    return [refusal, Draft("agent.unparsed", data, source="daemon", synthetic=True)]


def _command(state: State, request_id: RequestId, wanted: frames.CommandApproval) -> Outputs:
    place = state.place(wanted.thread_id, wanted.item_id)
    state.commands.pop(wanted.item_id, None)  # it does not run before it is allowed
    return _ask(state, asks.command(state.name("per", request_id), place, request_id, wanted))


def _patch(state: State, request_id: RequestId, wanted: frames.FileApproval) -> Outputs:
    place = state.place(wanted.thread_id, wanted.item_id)
    item = state.open.get(wanted.item_id)
    patch = item if isinstance(item, FileChange) else None
    return _ask(state, asks.patch(state.name("per", request_id), place, request_id, wanted, patch, state.spec.cwd))


def _rights(state: State, request_id: RequestId, wanted: frames.ProfileApproval) -> Outputs:
    place = state.place(wanted.thread_id, wanted.item_id)
    return _ask(state, asks.rights(state.name("per", request_id), place, request_id, wanted))


def _question(state: State, request_id: RequestId, wanted: frames.UserInput) -> Outputs:
    if not wanted.questions:
        return [state.calls.respond(request_id, {"answers": {}})]
    place = state.place(wanted.thread_id, wanted.item_id)
    ask = asks.question(state.name("que", request_id), place, request_id, wanted)
    state.asks[ask.ask_id] = ask
    return [ask.requested]


def _elicitation(state: State, request_id: RequestId, wanted: frames.Elicitation) -> Outputs:
    if wanted.meta is None or wanted.meta.codex_approval_kind != _APPROVAL:
        text = f"The MCP server '{wanted.server_name}' asked for input, which was declined: {wanted.message}"
        return [state.calls.respond(request_id, {"action": "decline"}), say.notice(text, "mcp")]
    calls = [item for item in state.open.values() if isinstance(item, McpToolCall)]
    same = [item for item in calls if item.server == wanted.server_name and item.arguments == wanted.meta.tool_params]
    item = same[-1] if same else None
    place = state.place(wanted.thread_id, item.id if item else f"elicitation_{request_id}")
    return _ask(state, asks.mcp_tool(state.name("per", request_id), place, request_id, wanted, item))


def _ask(state: State, ask: asks.Ask) -> Outputs:
    if state.spec.permission_mode == "bypass":
        return decide(state, ask, PermissionAnswer(ask_id=ask.ask_id, allow=True))
    state.asks[ask.ask_id] = ask
    return [ask.requested]


def decide(state: State, ask: asks.Ask, answer: Any) -> Outputs:
    """Tell Codex a decision; the reason of a no goes ahead of it, so that the next model call has it."""
    reason = asks.refusal(ask, answer)
    steered = state.steer(ask.thread_id, [{"type": "text", "text": reason}]) if reason else []
    if ask.kind == "command" and answer.allow:
        state.commands[ask.native] = ask.thread_id
    return [*steered, state.calls.respond(ask.request_id, asks.reply(ask, answer))]


class Request(msgspec.Struct, frozen=True):
    """How a kind of request is read, and what is done with it."""

    decoder: msgspec.json.Decoder[Any]
    handle: Callable[[State, RequestId, Any], Outputs]


def _on(kind: type[Frame], handle: Callable[[State, RequestId, Any], Outputs]) -> Request:
    return Request(msgspec.json.Decoder(kind), handle)


REQUESTS = {
    "item/commandExecution/requestApproval": _on(frames.CommandApproval, _command),
    "item/fileChange/requestApproval": _on(frames.FileApproval, _patch),
    "item/permissions/requestApproval": _on(frames.ProfileApproval, _rights),
    "item/tool/requestUserInput": _on(frames.UserInput, _question),
    "mcpServer/elicitation/request": _on(frames.Elicitation, _elicitation),
}
REFUSED = {
    "account/chatgptAuthTokens/refresh": "Ostler holds no account.",
    "applyPatchApproval": "Ostler speaks the newer protocol.",
    "attestation/generate": "Ostler attests nothing.",
    "currentTime/read": "Ostler keeps no clock for Codex.",
    "execCommandApproval": "Ostler speaks the newer protocol.",
    "item/tool/call": "Ostler offers no tools of its own.",
}
