"""One assistant message while its turn runs: opens steps, closes everything, and never says a thing twice."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ostler.server.dialects.ai_sdk import data_parts
from ostler.server.dialects.ai_sdk.blocks import Blocks
from ostler.server.dialects.ai_sdk.chunks import (
    AnyChunk,
    Failure,
    Finish,
    FinishReason,
    FinishStep,
    Start,
    StartStep,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from ostler.server.dialects.ai_sdk.profile import Profile
from ostler.server.dialects.ai_sdk.tools import Call, Calls, output_of
from ostler.wire.events import PermissionData, TurnEndedData
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, TextPart, ToolCallPart, ToolResultPart

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop": "stop",
    "max_tokens": "length",
    "length": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
    "error": "error",
}
_SHOWN_TERMINAL = 4 * 1024


class Message:
    """The state of one assistant message."""

    def __init__(self, message_id: str, session: str, profile: Profile) -> None:
        self.id = message_id
        self.usage: dict[str, Any] = {}
        self.error: str | None = None
        """Why the turn fails, if it does."""
        self._session = session
        self._profile = profile
        self._blocks = Blocks()
        self._calls = Calls()
        self._in_step = False
        self._terminal = ""
        self._approvals: dict[str, Call] = {}

    def start(self) -> Iterator[AnyChunk]:
        """Begin; the session's id comes first of all."""
        yield Start(message_id=self.id, message_metadata={"sessionId": self._session})
        yield from self._step()

    # Steps

    def _step(self) -> Iterator[AnyChunk]:
        """Make sure a step is open into which something new may go."""
        if self._in_step and self._calls.are_settled and self._blocks.are_closed:
            yield from self._end_step()
        if not self._in_step:
            self._in_step = True
            self._calls.step += 1
            yield StartStep()

    def _end_step(self) -> Iterator[AnyChunk]:
        yield from self._blocks.close_all()
        if self._in_step:
            self._in_step = False
            yield FinishStep()

    # Items

    def item_started(self, item: Item) -> Iterator[AnyChunk]:
        """An item opened."""
        match item.kind:
            case "message":
                for part in item.content:
                    yield from self._say(item.item_id, part)
            case "tool_call":
                yield from self._tool_call(item)
            case "tool_result":
                yield from self._adopt(item)
            case _:
                pass

    def item_grew(self, item_id: str, delta: ContentPart) -> Iterator[AnyChunk]:
        """An item grew."""
        call = self._calls.find(item_id)
        if call is None:
            yield from self._say(item_id, delta)
        elif isinstance(delta, TextPart | ToolResultPart) and not self._calls.knows(item_id):
            yield from self._calls.grow(call, output_of((delta,)))
        elif isinstance(delta, ToolCallPart):
            yield from self._calls.grow_input(item_id, delta)

    def item_completed(self, item: Item) -> Iterator[AnyChunk]:
        """An item is final."""
        match item.kind:
            case "message":
                yield from self._message_completed(item)
            case "tool_call":
                yield from self._tool_call(item)
            case "tool_result":
                yield from self._adopt(item)
                if (call := self._calls.find(item.item_id)) is not None:
                    yield from self._calls.answer(call, output_of(item.content), failed=item.status == "failed")
            case _:
                yield from data_parts.status(item)

    def _say(self, item_id: str, part: ContentPart) -> Iterator[AnyChunk]:
        if self._blocks.would_open(item_id, part):
            yield from self._step()
        yield from self._blocks.grow(item_id, part)

    def _message_completed(self, item: Item) -> Iterator[AnyChunk]:
        for part in self._blocks.unsaid(item):
            yield from self._say(item.item_id, part)
        yield from self._blocks.close(item.item_id)
        yield from data_parts.attachments(item, self._session)

    def _tool_call(self, item: Item) -> Iterator[AnyChunk]:
        part = next((part for part in item.content if isinstance(part, ToolCallPart)), None)
        part = part or ToolCallPart(name="", arguments="", call_id="")
        if self._calls.knows(item.item_id):
            yield from self._calls.update(item.item_id, part)
        else:
            yield from self._step()
            yield from self._calls.start(item.item_id, part)
        if (call := self._calls.find(item.item_id)) is not None:
            call.status = item.status

    def _adopt(self, result: Item) -> Iterator[AnyChunk]:
        """Find the call of a result; make one up for a result that nobody called for."""
        if self._calls.adopt(result) is not None:
            return
        named = next((part.call_id for part in result.content if isinstance(part, ToolResultPart)), "")
        made_up = f"{result.item_id}_call"
        yield from self._step()
        yield from self._calls.start(made_up, ToolCallPart(name="tool", arguments="", call_id=named))
        self._calls.adopt(msgspec.structs.replace(result, parent_id=made_up))

    def printed(self, item_id: str | None, text: str) -> Iterator[AnyChunk]:
        """A command printed something."""
        if (call := self._calls.find(item_id)) is not None:
            yield from self._calls.grow(call, text)
        else:
            self._terminal = (self._terminal + text)[-_SHOWN_TERMINAL:]
            yield data_parts.terminal(self._terminal)

    def call_id(self, item_id: str | None) -> str | None:
        """The id of a tool call as the client knows it."""
        call = self._calls.find(item_id)
        return call.id if call else None

    # Permissions

    def permission(self, data: PermissionData) -> Iterator[AnyChunk]:
        """A permission is asked for, or decided."""
        if data.status != "requested" and data.permission_id in self._approvals:
            yield from self._decided(data, self._approvals[data.permission_id])
        elif data.status == "requested" and self._is_approval(data):
            yield from self._request_approval(data)
        else:
            yield data_parts.permission(data, session=self._session, call_id=self.call_id(data.item_id))

    def _is_approval(self, data: PermissionData) -> bool:
        profile, call = self._profile, self._asked_call(data)
        if not profile.has_approvals or (call is not None and call.answered):
            return False
        return profile.hears_responses or profile.is_open(data.permission_id)

    def _asked_call(self, data: PermissionData) -> Call | None:
        return self._calls.find(data.item_id) or self._calls.find(data.permission_id)

    def _request_approval(self, data: PermissionData) -> Iterator[AnyChunk]:
        call = self._asked_call(data)
        if call is None:
            yield from self._step()
            part = ToolCallPart(name=data.tool or "permission", arguments=_arguments(data), call_id=data.permission_id)
            yield from self._calls.start(data.permission_id, part)
            call = self._calls.find(data.permission_id)
        if call is not None:
            yield from call.announce(self._calls.step)
            self._approvals[data.permission_id] = call
            yield ToolApprovalRequest(approval_id=data.permission_id, tool_call_id=call.id)

    def _decided(self, data: PermissionData, call: Call) -> Iterator[AnyChunk]:
        approved = data.status != "reject"
        if self._profile.hears_responses and not call.answered:
            yield ToolApprovalResponse(approval_id=data.permission_id, approved=approved, reason=data.message)
        if not approved:
            yield from self._calls.deny(call)
        elif self._calls.knows(data.permission_id):  # a call made up for the sake of asking has no other answer
            yield from self._calls.answer(call, "Approved.", failed=False)

    # Ends

    def park(self) -> Iterator[AnyChunk]:
        """Let the client go, to come back with an answer; the message goes on in another stream."""
        yield from self._calls.announce_all()
        yield from self._end_step()
        yield self._finish(None)

    def end(self, data: TurnEndedData) -> Iterator[AnyChunk]:
        """The turn is over."""
        yield from self._calls.close_all()
        if data.outcome == "completed" and self._blocks.are_empty and self._calls.are_empty:
            yield data_parts.notice("info", "The agent ended its turn without saying anything.")
        yield from self._end_step()
        if data.outcome == "failed":
            yield Failure(error_text=self.error or f"The turn failed: {data.stop_reason or 'no reason was given'}.")
        else:
            yield self._finish(data)

    def _finish(self, data: TurnEndedData | None) -> Finish:
        metadata: dict[str, Any] = {"usage": self.usage} if self.usage else {}
        if data is not None and data.stop_reason is not None:
            metadata["stopReason"] = data.stop_reason
        if data is not None and data.outcome != "completed":
            metadata["outcome"] = data.outcome
        reason = _finish_reason(data) if self._profile.has_approvals else None
        return Finish(finish_reason=reason, message_metadata=metadata or None)


def _finish_reason(data: TurnEndedData | None) -> FinishReason:
    if data is None:
        return "tool-calls"
    return "other" if data.outcome != "completed" else _FINISH.get(data.stop_reason or "end_turn", "other")


def _arguments(data: PermissionData) -> str:
    return msgspec.json.encode({"action": data.action}).decode()
