"""The conversation of a session as messages for `useChat`: what a client would have made of the streams."""

import base64
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ostler.base.context import Attached, Context, unwrapped
from ostler.server.dialects.ai_sdk.bodies import StoredMessage
from ostler.server.dialects.ai_sdk.chunks import AnyChunk, Data
from ostler.server.dialects.ai_sdk.folding import Folded
from ostler.server.dialects.ai_sdk.imported import given_back, pictures_in
from ostler.server.dialects.ai_sdk.profile import Profile
from ostler.server.dialects.ai_sdk.projection import UiProjection, latest
from ostler.server.dialects.formats import Subject
from ostler.wire.events import AnyEvent, ItemCompleted, TurnEnded, TurnStarted, UnknownEvent
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, TextPart

Part = dict[str, Any]
ReadImage = Callable[[str], bytes | None]
"""Gives the content of an image that a client sent; None for one that is not ours to show."""


class StoredConversation:
    """Folds a log; the answer of a turn that still runs is left out, since its stream brings it whole."""

    def __init__(self, subject: Subject, profile: Profile, read_image: ReadImage, *, replays: bool = False) -> None:
        """One that `replays` gives the chunks too, and keeps no message."""
        self._projection = UiProjection(subject, profile)
        self._read_image = read_image
        self._replays = replays
        self._messages: list[StoredMessage] = []
        self._answer: Folded | None = None
        self._chunks: list[AnyChunk] = []
        """Of the answer that is not whole yet."""
        self._replayed: list[AnyChunk] = []

    def add(self, events: Iterable[AnyEvent | UnknownEvent]) -> None:
        """Fold more events in, in order."""
        for event in events:
            if isinstance(event, TurnStarted):
                self._answer, self._chunks = Folded(), []
            for chunk in self._projection.feed(event):
                self._take(chunk)
            if isinstance(event, TurnEnded):
                self._keep_answer()
            if isinstance(event, ItemCompleted) and event.data.item.role == "user":
                asked = self._asked(event.data.item)
                if self._replays:
                    self._replayed += map(_shown, asked)
                else:
                    self._messages += asked

    def messages(self) -> tuple[StoredMessage, ...]:
        """Everything up to the last finished message."""
        return tuple(self._messages)

    def _take(self, chunk: AnyChunk) -> None:
        if self._replays:
            self._chunks.append(chunk)
        elif self._answer is not None:
            self._answer.add(chunk)

    def replayed(self) -> list[AnyChunk]:
        """The chunks of what was finished since the last call: answers as they came, and what others said between."""
        replayed, self._replayed = self._replayed, []
        return latest(replayed)

    def _keep_answer(self) -> None:
        if self._replays:
            self._replayed += self._chunks
            self._chunks = []
        elif self._answer is not None:
            parts, metadata = tuple(self._answer.parts), self._answer.metadata or None
            self._messages.append(StoredMessage(id=self._answer.id, role="assistant", parts=parts, metadata=metadata))
            self._answer = None

    def _asked(self, item: Item) -> list[StoredMessage]:
        first = item.content[0] if item.content else None
        context = unwrapped(first.text) if isinstance(first, TextPart) else None
        given = context or Context()
        numbers = pictures_in(given.history)
        start = 0 if context is None else 1 + len(numbers)
        parts = [part for part in map(self._part, item.content[start:]) if part is not None]
        parts += map(_file, given.files)
        pictures = dict(zip(numbers, map(self._part, item.content[1:start]), strict=False))
        known = {number: part for number, part in pictures.items() if part is not None}
        earlier = [StoredMessage(id=each.id, role=each.role, parts=given_back(each, known)) for each in given.history]
        return [*earlier, StoredMessage(id=item.item_id, role="user", parts=tuple(parts))]

    def _part(self, part: ContentPart) -> Part | None:
        match part:
            case TextPart(text=text):
                return {"type": "text", "text": text}
            case ImagePart(path=path, mime=mime):
                return _image(self._read_image(path), path, mime or "image/png")
            case FileRefPart(path=path):
                return {"type": "data-file", "data": {"path": path}}
            case _:
                return None


def _shown(message: StoredMessage) -> Data:
    """A stream has the words of the assistant only; those of others are told beside them."""
    return Data(type="data-message", id=message.id, data=msgspec.to_builtins(message), transient=True)


def _image(content: bytes | None, path: str, mime: str) -> Part:
    if content is None:
        return {"type": "data-file", "data": {"path": path, "mediaType": mime}}
    url = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    return {"type": "file", "mediaType": mime, "url": url}


def _file(attached: Attached) -> Part:
    url = attached.url
    if url is None:
        text = base64.b64encode((attached.text or "").encode()).decode()
        url = f"data:{attached.media_type};base64,{text}"
    return {"type": "file", "mediaType": attached.media_type, "filename": attached.name, "url": url}
