"""What was said in a thread before it came here, with its tool calls, thoughts and files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ostler.server.dialects.agui.bodies import AguiMessage, ToolCall
from ostler.server.dialects.ai_sdk.bodies import UiMessage, UiPart
from ostler.server.dialects.ai_sdk.imported import Imported

Part = dict[str, Any]
_SPOKEN = frozenset({"user", "assistant", "reasoning"})


def taken(messages: Sequence[AguiMessage]) -> Imported:
    """The messages as a conversation begun elsewhere; what a tool answered stands with its call."""
    imported = Imported()
    answers = {message.tool_call_id: message for message in messages if message.role == "tool" and message.tool_call_id}
    for index, message in enumerate(messages):
        parts = list(_parts(message, answers)) if message.role in _SPOKEN else []
        if parts:
            role = "user" if message.role == "user" else "assistant"
            whole = UiMessage(id=message.id, role=role, parts=msgspec.convert(parts, tuple[UiPart, ...]))  # type: ignore[arg-type]  # one of two roles
            imported.add(whole, parts, index)
    return imported


def _parts(message: AguiMessage, answers: Mapping[str, AguiMessage]) -> Iterator[Part]:
    kind = "reasoning" if message.role == "reasoning" else "text"
    if isinstance(message.content, str) and message.content:
        yield {"type": kind, "text": message.content}
    for piece in message.content if isinstance(message.content, list) else ():
        if isinstance(piece, dict) and (part := _piece(piece)) is not None:
            yield part
    for call in message.tool_calls or ():
        yield _called(call, answers.get(call.id))


def _piece(piece: Part) -> Part | None:
    """A text, or a file in its own words: `source`, or the older `data` and `url`."""
    if isinstance(piece.get("text"), str):
        return {"type": "text", "text": piece["text"]}
    source = piece.get("source")
    found: Part = source if isinstance(source, dict) else piece
    mime = str(found.get("mimeType") or "application/octet-stream")
    data = found.get("value") if found.get("type") == "data" else found.get("data")
    url = found.get("value") if found.get("type") == "url" else found.get("url")
    if isinstance(data, str):
        return {"type": "file", "mediaType": mime, "url": f"data:{mime};base64,{data}"}
    return {"type": "file", "mediaType": mime, "url": url} if isinstance(url, str) else None


def _called(call: ToolCall, answer: AguiMessage | None) -> Part:
    part = {"type": f"tool-{call.function.name}", "toolCallId": call.id, "input": _decoded(call.function.arguments)}
    if answer is None:
        return {**part, "state": "input-available"}
    if answer.error is not None:
        return {**part, "state": "output-error", "errorText": answer.error}
    return {**part, "state": "output-available", "output": answer.content}


def _decoded(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments
