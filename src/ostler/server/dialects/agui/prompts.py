"""The last message of a client as a prompt, with what was said before for a session that does not know it."""

import base64
from typing import Any

import msgspec

from ostler.base.context import Context, differing, wrapped
from ostler.base.errors import InvalidRequest
from ostler.server.dialects.agui.bodies import AguiMessage, Content, RunAgentInput
from ostler.server.dialects.agui.imported import taken
from ostler.server.store.records import SessionSpec
from ostler.wire.parts import ImageInput, InputPart, TextInput
from ostler.wire.sessions import SendMessage

_INSTRUCTIONS = frozenset({"system", "developer"})


def instructions_of(wanted: RunAgentInput) -> str | None:
    """What the client wants the agent to be told in every turn; None if it does not say."""
    texts = (_text(message) for message in wanted.messages if message.role in _INSTRUCTIONS)
    return "\n\n".join(filter(None, texts)) or None


def prompt_of(wanted: RunAgentInput, known: SessionSpec | None) -> SendMessage:
    """What the agent is to hear; `known` is what an existing session was made with."""
    last = wanted.messages[-1] if wanted.messages else None
    if last is None or last.role != "user":
        raise _refused("messages", "the last message must be the user's")
    parts = _parts(last, len(wanted.messages) - 1)
    if not any(not isinstance(part, TextInput) or part.text.strip() for part in parts):
        raise _refused(f"messages[{len(wanted.messages) - 1}].content", "must not be empty")
    before = _before(wanted) if known is None else _others(wanted, known)
    return SendMessage(parts=(*before, *parts))


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})


def _others(wanted: RunAgentInput, known: SessionSpec) -> list[InputPart]:
    context = wrapped(Context(instructions=differing(instructions_of(wanted), known.instructions)))
    return [TextInput(text=context)] if context else []


def _before(wanted: RunAgentInput) -> list[InputPart]:
    """What a new thread must be told before the newest message: a context, and the pictures in it."""
    imported = taken(wanted.messages[:-1])
    history = tuple(imported.messages)
    inputs = {entry.description: entry.value for entry in wanted.context}
    context = wrapped(Context(inputs=inputs, history=history))
    return [TextInput(text=context), *imported.pictures(history)] if context else []


def _text(message: AguiMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    pieces = message.content if isinstance(message.content, list) else []
    return "".join(str(piece.get("text", "")) for piece in pieces if isinstance(piece, dict))


def _parts(message: AguiMessage, index: int) -> list[InputPart]:
    place = f"messages[{index}].content"
    content: Any = message.content
    if isinstance(content, str):
        return [TextInput(text=content)]
    try:
        pieces = msgspec.convert(content, tuple[Content, ...])
    except msgspec.ValidationError as error:
        raise _refused(place, str(error)) from None
    return [_part(piece, f"{place}[{number}]") for number, piece in enumerate(pieces)]


def _part(piece: Content, place: str) -> InputPart:
    if piece.type == "text" and piece.text is not None:
        return TextInput(text=piece.text)
    source = piece.source
    mime = (source.mime_type if source else piece.mime_type) or ""
    data = source.value if source is not None and source.type == "data" else piece.data
    address = source.value if source is not None and source.type == "url" else piece.url
    if data is not None and mime.startswith("image/"):
        return _image(data, mime, place)
    if address is not None and not address.startswith("data:"):
        return TextInput(text=f"[attachment]({address})")
    raise _refused(place, f"content of type '{piece.type}' ({mime or 'no media type'}) is not supported")


def _image(data: str, mime: str, place: str) -> ImageInput:
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        raise _refused(place, "the image is not valid base64") from None
    return ImageInput(data=data, mime=mime)
