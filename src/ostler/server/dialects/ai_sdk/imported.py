"""Messages of a conversation begun elsewhere: what the agent gets of them, and how they are given back."""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.base.context import Attached, EarlierMessage
from ostler.base.errors import InvalidRequest
from ostler.server.dialects.ai_sdk.bodies import UiMessage, UiPart, text_of
from ostler.server.dialects.ai_sdk.prompts import read_file
from ostler.wire.parts import ImageInput

Part = dict[str, Any]
_PICTURE = "ostler-picture:"
"""Stands for the address of a picture that goes along with the prompt; the number says which."""
_HEAD = "urlHead"
"""How the address of a file began whose text is given instead."""
_LONGEST_URL = 8192
_PLAIN = frozenset({"text", "step-start"})


class Imported:
    """Takes messages of a client into the context of a prompt."""

    def __init__(self) -> None:
        self.messages: list[EarlierMessage] = []
        self._pictures: list[ImageInput] = []

    def add(self, message: UiMessage, parts: Sequence[Part], index: int) -> None:
        """Take one more message; `parts` are its parts as the client sent them."""
        plain = all(part.get("type") in _PLAIN for part in parts)
        self.messages.append(
            EarlierMessage(
                id=message.id or f"before_{index + 1}",
                role="user" if message.role == "user" else "assistant",
                text=text_of(message),
                parts=() if plain else tuple(map(self._stored, parts)),
            )
        )

    def pictures(self, messages: Sequence[EarlierMessage]) -> list[ImageInput]:
        """The pictures of those messages, in their order."""
        return [self._pictures[number] for number in pictures_in(messages)]

    def _stored(self, part: Part) -> Part:
        match _content(part):
            case ImageInput() as picture:
                self._pictures.append(picture)
                return {**part, "url": f"{_PICTURE}{len(self._pictures) - 1}"}
            case str() as text:
                head = str(part["url"]).partition(",")[0]
                return {**{name: value for name, value in part.items() if name != "url"}, "text": text, _HEAD: head}
            case _ if len(str(part.get("url") or "")) > _LONGEST_URL:
                return {**part, "url": f"data:,left out ({len(part['url'])} characters)"}
            case _:
                return part


def _content(part: Part) -> ImageInput | str | None:
    """The picture or the text in the address of a file; None if there is neither."""
    url = part.get("url")
    if part.get("type") != "file" or not isinstance(url, str) or not url.startswith("data:"):
        return None
    try:
        found = read_file(msgspec.convert(part, UiPart), "parts")
    except (InvalidRequest, msgspec.ValidationError):
        return None
    if isinstance(found, Attached):
        return found.text if url.partition(",")[0].endswith(";base64") else None
    return found


def pictures_in(messages: Sequence[EarlierMessage]) -> list[int]:
    """The numbers of the pictures that messages have."""
    urls = [str(part.get("url", "")) for message in messages for part in message.parts]
    return [int(url.removeprefix(_PICTURE)) for url in urls if url.startswith(_PICTURE)]


def given_back(message: EarlierMessage, pictures: dict[int, Part]) -> tuple[Part, ...]:
    """The parts of a message as they came; of a picture, what is known of it."""
    if not message.parts:
        return ({"type": "text", "text": message.text},)
    return tuple(_as_it_came(part, pictures) for part in message.parts)


def _as_it_came(part: Part, pictures: dict[int, Part]) -> Part:
    if _HEAD in part:
        payload = base64.b64encode(str(part.get("text", "")).encode()).decode()
        fields = {name: value for name, value in part.items() if name not in {_HEAD, "text"}}
        return {**fields, "url": f"{part[_HEAD]},{payload}"}
    url = str(part.get("url", ""))
    if not url.startswith(_PICTURE):
        return part
    known = pictures.get(int(url.removeprefix(_PICTURE)), {})
    return {**part, "url": known["url"]} if "url" in known else {**known} or part
