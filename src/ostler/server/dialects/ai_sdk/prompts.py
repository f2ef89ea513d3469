"""A chat message as a prompt: text, images and attached files, checked before anything is created."""

import base64
import binascii
import mimetypes
from urllib.parse import unquote_to_bytes

import msgspec

from ostler.base.context import Attached
from ostler.base.errors import InvalidRequest
from ostler.server.dialects.ai_sdk.bodies import UiMessage, UiPart
from ostler.wire.parts import ImageInput, InputPart, TextInput


class UserMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a user says with one message."""

    parts: list[InputPart]
    files: tuple[Attached, ...]


def read_message(message: UiMessage, where: str) -> UserMessage:
    """Read a message; `where` is its place in the body, for the words of a refusal."""
    found = [_read(part, f"{where}.parts[{index}]") for index, part in enumerate(message.parts)]
    content = UserMessage(
        parts=[part for part in found if isinstance(part, TextInput | ImageInput)],
        files=tuple(part for part in found if isinstance(part, Attached)),
    )
    if not (content.parts or content.files):
        raise _refusal(f"{where}.parts", "has no text, image or file to send")
    return content


def _read(part: UiPart, where: str) -> TextInput | ImageInput | Attached | None:
    match part.type:
        case "text":
            return TextInput(text=part.text) if part.text and part.text.strip() else None
        case "file":
            return read_file(part, where)
        case _:
            return None


def read_file(part: UiPart, where: str) -> ImageInput | Attached:
    """A file of a message: a picture, a text, or the address where it is."""
    url, name = part.url or "", part.filename or "file"
    if url.startswith(("http://", "https://")):
        return Attached(name=name, media_type=part.media_type or "", url=url)
    if not url.startswith("data:"):
        raise _refusal(f"{where}.url", "must be a data:, http: or https: address")
    mime, content = _decoded(url, where)
    mime = part.media_type or mime
    if mime.startswith("image/"):
        return _image(mime, content, where)
    return Attached(name=name, media_type=mime, text=_text(mime, content, where))


def _decoded(url: str, where: str) -> tuple[str, bytes]:
    head, comma, payload = url.removeprefix("data:").partition(",")
    if not comma:
        raise _refusal(f"{where}.url", "is not a complete data: address")
    mime, *options = head.split(";")
    if "base64" not in options:
        return mime, unquote_to_bytes(payload)
    try:
        return mime, base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refusal(f"{where}.url", "is not valid base64") from error


def _image(mime: str, content: bytes, where: str) -> ImageInput:
    if mimetypes.guess_extension(mime) is None:
        raise _refusal(f"{where}.mediaType", f"'{mime[:80]}' is not a known image type, such as image/png")
    return ImageInput(data=base64.b64encode(content).decode(), mime=mime)


def _text(mime: str, content: bytes, where: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _refusal(where, f"is neither text nor an image ('{mime[:80]}'); agents get only those") from error


def _refusal(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})
