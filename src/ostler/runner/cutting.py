"""Keeps what an agent says within bounds: what is too long is cut with a mark that says how much, never silently."""

import hashlib
from typing import Any

import msgspec

from ostler.runner.trimming import MARK
from ostler.wire.events import (
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    TerminalOutputData,
    TurnEndedData,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, StatusPart
from ostler.wire.running import Draft

MOST_RAW_BYTES = 2**18
_LONG_FIELDS = ("text", "output", "arguments", "diff")
_RAW_HEAD = 1000
_TERMINAL = "printed by "
_MOST_REMEMBERED = 10_000


class Cutter:
    """Stands between the turn guard and the log; it depends on what it is fed alone, so a replay cuts the same."""

    def __init__(self, max_item_length: int) -> None:
        self._most = max_item_length
        self._grown: dict[str, int] = {}
        """How much each item under way has said, and how much its command has printed."""
        self._has_marks = False
        """Whether texts of this turn may say that they lost their middles."""

    def shortened(self, size: int) -> Draft:
        """The agent's frame was cut before it was read; what tells so."""
        self._has_marks = True
        message = f"The agent sent more than is kept: {size} bytes of its long texts were cut (see max_item_length)."
        return Draft("notice", NoticeData(severity="warning", message=message, code="cut"), "daemon", synthetic=True)

    def cut(self, drafts: list[Draft]) -> list[Draft]:
        """The drafts as they are kept."""
        kept: list[Draft] = []
        for draft in drafts:
            if self._keep(draft):
                draft.raw = _cut_raw(draft.raw)
                kept.append(draft)
        return kept

    def _keep(self, draft: Draft) -> bool:
        match draft.data:
            case ItemDeltaData() as data:
                size = sum(len(getattr(data.delta, name, None) or "") for name in _LONG_FIELDS)
                room = self._room(data.item_id, size)
                if room is not None and room < size:
                    draft.data = msgspec.structs.replace(data, delta=_shortened(data.delta, room, self._mark))
                return room is not None
            case TerminalOutputData() as printed:
                room = self._room(f"{_TERMINAL}{printed.item_id}", len(printed.data))
                if room is not None and room < len(printed.data):
                    draft.data = msgspec.structs.replace(printed, data=printed.data[:room] + self._mark)
                return room is not None
            case ItemStartedData(item=item):
                draft.data = ItemStartedData(item=self._cut_item(item, 0))
            case ItemCompletedData(item=item):
                said, printed_by = (self._grown.pop(key + item.item_id, 0) for key in ("", _TERMINAL))
                draft.data = ItemCompletedData(item=self._cut_item(item, max(said, printed_by) - self._most))
            case TurnEndedData():
                self._grown.clear()
                self._has_marks = False
            case _:
                pass
        return True

    def _room(self, key: str, size: int) -> int | None:
        """How much of a piece is kept; the first that does not fit carries the mark, those after it are left out."""
        before = self._grown.get(key, 0)
        self._grown[key] = before + size
        if len(self._grown) > _MOST_REMEMBERED:
            del self._grown[next(iter(self._grown))]
        return None if before > self._most else min(size, self._most - before)

    @property
    def _mark(self) -> str:
        return f"\n[cut here: more than {self._most} characters; see max_item_length]\n"

    def _cut_item(self, item: Item, dropped: int) -> Item:
        """An item whose long texts have lost their middles, with a part that tells how much."""
        parts: list[ContentPart] = []
        for part in item.content:
            missing = sum(max(0, len(text) - self._most) for text in _texts(part))
            parts.append(_without_middle(part, self._most) if missing else part)
            if self._has_marks:
                missing += sum(int(size) for text in _texts(part) for size in MARK.findall(text))
            dropped = max(dropped, missing)
        if dropped <= 0:
            return item
        detail = f"About {dropped} characters are not kept; an item has at most {self._most} (max_item_length)."
        return msgspec.structs.replace(item, content=(*parts, StatusPart(label="cut", detail=detail)))


def _texts(part: ContentPart) -> list[str]:
    return [text for name in _LONG_FIELDS if (text := getattr(part, name, None))]


def _shortened(part: ContentPart, room: int, mark: str) -> ContentPart:
    changed = {name: f"{value[:room]}{mark}" for name in _LONG_FIELDS if (value := getattr(part, name, None))}
    return msgspec.structs.replace(part, **changed)


def _without_middle(part: ContentPart, most: int) -> ContentPart:
    half = most // 2
    changed: dict[str, Any] = {}
    for name in _LONG_FIELDS:
        value = getattr(part, name, None) or ""
        if len(value) > most:
            changed[name] = f"{value[:half]}\n[{len(value) - 2 * half} characters cut]\n{value[-half:]}"
    return msgspec.structs.replace(part, **changed)


def _cut_raw(raw: bytes | None) -> bytes | None:
    """The agent's own frame; of a large one only what tells which it was, since the event has its content."""
    if raw is None or len(raw) <= MOST_RAW_BYTES:
        return raw
    about = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    return msgspec.json.encode({"cut": {**about, "head": raw[:_RAW_HEAD].decode(errors="replace")}})
