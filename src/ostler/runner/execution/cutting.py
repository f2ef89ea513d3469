"""Keeps what an agent says within bounds: what is too long is cut with a mark that says how much, never silently."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ostler.runner.execution.fitting import LONGEST_NAME, Fitting, longest_texts, short_name
from ostler.runner.execution.trimming import MARK
from ostler.wire.events import (
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    TerminalOutputData,
    TurnEndedData,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, StatusPart, TextPart
from ostler.wire.running import Draft

MOST_RAW_BYTES = 2**18
_LONG_FIELDS = ("text", "output", "arguments", "diff")
_RAW_HEAD = 1000
_TERMINAL = "printed by "
_MOST_REMEMBERED = 10_000
T = TypeVar("T", bound=msgspec.Struct)


class Cutter:
    """Stands before the log; it depends on what it is fed alone, so a replay cuts the same."""

    def __init__(self, max_item_length: int) -> None:
        self._most = max_item_length
        self._in_items = longest_texts(max_item_length, of_items=True)
        self._in_others = longest_texts(max_item_length, of_items=False)
        self._grown: dict[str, int] = {}
        """How much each item under way has said, and how much its command has printed."""
        self._has_marks = False
        """Whether texts of this turn may say that they lost their middles."""

    def shortened(self, size: int) -> Draft:
        """The agent's frame was cut before it was read; what tells so."""
        self._has_marks = True
        return _cut_notice(f"{size} bytes")

    def fitted(self, output: T) -> T:
        """What the agent says about itself: names and lists of them."""
        return Fitting(self._in_others).struct(output)

    def cut(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts as they are kept."""
        fitting_drafts: list[Draft] = []
        for draft in drafts:
            match draft.data:
                case ItemDeltaData() as data:
                    fitting_drafts += self._delta(draft, data)
                case TerminalOutputData() as data:
                    fitting_drafts += self._printed(draft, data)
                case ItemStartedData(item=item):
                    draft.data = ItemStartedData(item=self._cut_item(item, 0))
                    fitting_drafts.append(draft)
                case ItemCompletedData(item=item):
                    written, printed = (self._grown.pop(key + item.item_id, 0) for key in ("", _TERMINAL))
                    draft.data = ItemCompletedData(item=self._cut_item(item, max(written, printed) - self._most))
                    fitting_drafts.append(draft)
                case _:
                    fitting_drafts += self._other(draft)
            draft.raw = _cut_raw(draft.raw)
        return fitting_drafts

    def _delta(self, draft: Draft, data: ItemDeltaData) -> list[Draft]:
        size = sum(map(len, _texts(data.delta)))
        room = self._room(data.item_id, size)
        if room is None:
            return []
        if room < size:
            data = draft.data = msgspec.structs.replace(data, delta=_shortened(data.delta, room, self._mark))
        if len(data.item_id) > LONGEST_NAME or not size:  # an odd one: its kind of part has no long text
            draft.data = Fitting(self._in_items).struct(data)
        return [draft]

    def _printed(self, draft: Draft, data: TerminalOutputData) -> list[Draft]:
        room = self._room(f"{_TERMINAL}{data.item_id}", len(data.data))
        if room is None:
            return []
        if room < len(data.data):
            data = draft.data = msgspec.structs.replace(data, data=data.data[:room] + self._mark)
        if data.item_id is not None and len(data.item_id) > LONGEST_NAME:
            draft.data = msgspec.structs.replace(data, item_id=short_name(data.item_id))
        return [draft]

    def _other(self, draft: Draft) -> list[Draft]:
        """Everything that is not an item: its texts are short, or else it is said that they were not."""
        if isinstance(draft.data, TurnEndedData):
            self._grown.clear()
            self._has_marks = False
        fitting = Fitting(self._in_others)
        draft.data = fitting.struct(draft.data)
        return [draft] if not fitting.cut else [_cut_notice(f"{fitting.cut} characters"), draft]

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
        fitting = Fitting(self._in_items)
        fit = fitting.struct(item)
        if self._has_marks:
            texts = (text for part in item.content for text in _texts(part))
            fitting.cut += sum(int(size) for text in texts for size in MARK.findall(text))
        dropped = max(dropped, fitting.cut)
        if dropped <= 0:
            return fit
        detail = f"About {dropped} characters are not kept; an item has at most {self._most} (max_item_length)."
        return msgspec.structs.replace(fit, content=(*fit.content, StatusPart(label="cut", detail=detail)))


def _cut_notice(how_much: str) -> Draft:
    message = f"The agent sent more than is kept: {how_much} of its long texts were cut (see max_item_length)."
    return Draft("notice", NoticeData(severity="warning", message=message, code="cut"), "daemon", synthetic=True)


def _texts(part: ContentPart) -> list[str]:
    if type(part) is TextPart:  # as nearly all are
        return [part.text]
    return [text for name in _LONG_FIELDS if (text := getattr(part, name, None))]


def _shortened(part: ContentPart, room: int, mark: str) -> ContentPart:
    changed = {name: f"{value[:room]}{mark}" for name in _LONG_FIELDS if (value := getattr(part, name, None))}
    return msgspec.structs.replace(part, **changed)


def _cut_raw(raw: bytes | None) -> bytes | None:
    """The agent's own frame; of a large one only what tells which it was, since the event has its content."""
    if raw is None or len(raw) <= MOST_RAW_BYTES:
        return raw
    about = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    return msgspec.json.encode({"cut": {**about, "head": raw[:_RAW_HEAD].decode(errors="replace")}})
