"""Chunks folded to the message that a client makes of them; so that a stored conversation equals a streamed one."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.server.dialects.ai_sdk.chunks import (
    AnyChunk,
    Data,
    File,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolApprovalResponse,
    ToolInputAvailable,
    ToolInputStart,
    ToolOutputAvailable,
    ToolOutputDenied,
    ToolOutputError,
)

Part = dict[str, Any]


class Folded:
    """One message as it grows."""

    def __init__(self) -> None:
        self.id = ""
        self.metadata: dict[str, Any] = {}
        self.parts: list[Part] = []
        self._blocks: dict[str, tuple[Part, list[str]]] = {}
        self._calls: dict[str, Part] = {}
        self._data: dict[tuple[str, str], Part] = {}
        self._approvals: dict[str, Part] = {}

    def add(self, chunk: AnyChunk) -> None:
        """Take one more chunk."""
        if (fold := _FOLDS.get(type(chunk))) is not None:
            fold(self, chunk)

    def _start(self, chunk: Start) -> None:
        self.id = chunk.message_id
        self.metadata |= chunk.message_metadata or {}

    def _finish(self, chunk: Finish) -> None:
        self.metadata |= chunk.message_metadata or {}

    def _step(self, _: StartStep) -> None:
        self.parts.append({"type": "step-start"})

    def _open(self, chunk: TextStart | ReasoningStart) -> None:
        kind = "text" if isinstance(chunk, TextStart) else "reasoning"
        part: Part = {"type": kind, "text": "", "state": "streaming"}
        self._blocks[chunk.id] = part, []
        self.parts.append(part)

    def _grow(self, chunk: TextDelta | ReasoningDelta) -> None:
        self._blocks[chunk.id][1].append(chunk.delta)

    def _close(self, chunk: TextEnd | ReasoningEnd) -> None:
        part, pieces = self._blocks.pop(chunk.id)
        part |= {"text": "".join(pieces), "state": "done"}

    def _call(self, chunk: ToolInputStart) -> None:
        part: Part = {"type": f"tool-{chunk.tool_name}", "toolCallId": chunk.tool_call_id, "state": "input-streaming"}
        self._calls[chunk.tool_call_id] = part
        self.parts.append(part)

    def _input(self, chunk: ToolInputAvailable) -> None:
        self._calls[chunk.tool_call_id] |= {"state": "input-available", "input": chunk.input}

    def _output(self, chunk: ToolOutputAvailable) -> None:
        part = self._calls[chunk.tool_call_id]
        part.pop("preliminary", None)
        part |= {"state": "output-available", "output": chunk.output}
        if chunk.preliminary:
            part["preliminary"] = True

    def _failed(self, chunk: ToolOutputError) -> None:
        part = self._calls[chunk.tool_call_id]
        for name in ("output", "preliminary"):
            part.pop(name, None)
        part |= {"state": "output-error", "errorText": chunk.error_text}

    def _approval(self, chunk: ToolApprovalRequest) -> None:
        part = self._approvals[chunk.approval_id] = self._calls[chunk.tool_call_id]
        part |= {"state": "approval-requested", "approval": {"id": chunk.approval_id}}

    def _response(self, chunk: ToolApprovalResponse) -> None:
        part = self._approvals[chunk.approval_id]
        part["state"] = "approval-responded"
        part["approval"] |= {"approved": chunk.approved}
        if chunk.reason is not None:
            part["approval"]["reason"] = chunk.reason

    def _denied(self, chunk: ToolOutputDenied) -> None:
        self._calls[chunk.tool_call_id]["state"] = "output-denied"

    def _show(self, chunk: File) -> None:
        self.parts.append(msgspec.to_builtins(chunk))

    def _put(self, chunk: Data) -> None:
        if chunk.transient:
            return
        known = self._data.get((chunk.type, chunk.id)) if chunk.id is not None else None
        if known is not None:
            known["data"] = chunk.data
            return
        part: Part = msgspec.to_builtins(chunk)
        self.parts.append(part)
        if chunk.id is not None:
            self._data[chunk.type, chunk.id] = part


_FOLDS: dict[type, Callable[[Folded, Any], None]] = {
    Start: Folded._start,
    Finish: Folded._finish,
    StartStep: Folded._step,
    TextStart: Folded._open,
    ReasoningStart: Folded._open,
    TextDelta: Folded._grow,
    ReasoningDelta: Folded._grow,
    TextEnd: Folded._close,
    ReasoningEnd: Folded._close,
    ToolInputStart: Folded._call,
    ToolInputAvailable: Folded._input,
    ToolOutputAvailable: Folded._output,
    ToolOutputError: Folded._failed,
    ToolApprovalRequest: Folded._approval,
    ToolApprovalResponse: Folded._response,
    ToolOutputDenied: Folded._denied,
    File: Folded._show,
    Data: Folded._put,
}
