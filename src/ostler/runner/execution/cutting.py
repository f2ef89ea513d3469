"""Keeps what an agent says within bounds: what is too long is cut with a mark that says how much, never silently."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ostler.wire.events import (
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    TerminalOutputData,
    TurnEndedData,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, JsonPart, StatusPart, TextPart
from ostler.wire.running import Draft

MOST_RAW_BYTES = 2**18
_LONG_FIELDS = ("text", "output", "arguments", "diff")
_RAW_HEAD = 1000
_TERMINAL = "printed by "
_MOST_REMEMBERED = 10_000


LONGEST_NAME = 1000
LONGEST_PATH = 4096
LONGEST_WORDS = 2**16
MOST_ENTRIES = 1000
_NAMES = frozenset(
    {
        *("title", "name", "label", "header", "id", "tool", "code", "currency", "artifact_type", "location"),
        *("model", "mode", "variant", "agent_version", "native_session_id", "item_id", "native_item_id", "parent_id"),
        *("call_id", "mime", "stop_reason"),
    }
)
_ASKS = frozenset({"permission_id", "question_id"})  # an answer must find its ask


MOST_VALUES = 1_000_000
"""How many values a frame may have: each costs some 60 bytes once it is read, however short it is."""


_MARK = b"\\n[%d bytes cut here; see max_item_length]\\n"
MARK = re.compile(r"\[(\d+) bytes cut here; see max_item_length\]")
"""How a text says what it lost, once it is read."""
_MARK_ROOM = 100
_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_PAIR_BYTES = 12  # two escapes of one character
_FIRST_OF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_REST_OF_PAIR = re.compile(rb"[0-9a-fA-F]{0,4}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SLACK = 2**16
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


def has_too_many_values(frame: bytes) -> bool:
    """Whether a frame that is not even long would need very much memory."""
    if len(frame) <= 2 * MOST_VALUES or _values(frame) <= MOST_VALUES:
        return False
    return _values(_QUOTED.sub(b"", frame)) > MOST_VALUES


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


class Trimmer:
    """One frame, fed in pieces; what comes out does not depend on how it was cut into them."""

    def __init__(self, longest: int) -> None:
        """`longest` is how many bytes of JSON one text may have."""
        self._longest = longest
        self._half = max(0, longest - _MARK_ROOM) // 2
        self._output = bytearray()
        self._began: int | None = None
        """Where the text under way begins, while one is."""
        self._size = 0
        self._tail: bytearray | None = None
        """The end of a text that is too long, so far."""
        self._carry = b""
        self.cut = 0
        """How many bytes were left out."""

    @property
    def settled(self) -> int:
        """How many bytes are kept for sure."""
        return len(self._output) if self._began is None else self._began

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        piece, self._carry = self._carry + piece, b""
        at = 0
        while at < len(piece):
            at = self._outside(piece, at) if self._began is None else self._inside(piece, at)

    def end(self) -> bytes:
        """The frame is over: all that is kept of it."""
        if self._began is not None:
            self._close()
        return bytes(self._output) + self._carry

    def _outside(self, piece: bytes, at: int) -> int:
        quote = piece.find(b'"', at)
        end = len(piece) if quote < 0 else quote + 1
        self._output += piece[at:end]
        if quote >= 0:
            self._began, self._size = len(self._output), 0
        return end

    def _inside(self, piece: bytes, at: int) -> int:
        found = _TEXT.match(piece, at)
        end = found.end() if found is not None else at
        self._grow(piece[at:end])
        if end < len(piece) and piece[end] == ord('"'):
            self._close()
            self._output += b'"'
            return end + 1
        self._carry = piece[end:]  # nothing, or the first half of an escape
        return len(piece)

    def _grow(self, text: bytes) -> None:
        self._size += len(text)
        if self._tail is not None:
            self._tail += text
            if len(self._tail) > self._half + _SLACK:
                del self._tail[: len(self._tail) - self._half - 1]  # the byte before tells where it can begin
            return
        self._output += text
        if self._began is not None and self._size > self._longest:
            head = self._began + self._half
            self._tail = self._output[head:]
            del self._output[head:]

    def _close(self) -> None:
        """A text is over; if it was too long, only its beginning and its end stay."""
        began, tail = self._began or 0, self._tail
        self._began = self._tail = None
        if tail is None:
            return
        del self._output[_whole_until(self._output, began) :]
        del tail[: _whole_from(tail, max(0, len(tail) - self._half))]
        dropped = self._size - (len(self._output) - began) - len(tail)
        self.cut += dropped
        self._output += _MARK % dropped
        self._output += tail


def _whole_until(text: bytearray, began: int) -> int:
    """Where the last whole character of a text that was cut off ends."""
    near = max(began, len(text) - _PAIR_BYTES)
    if (escape := text.find(b"\\", near)) >= 0:
        end = _before_slashes(text, began, escape)
        is_half = _FIRST_OF_PAIR.fullmatch(text, max(began, end - _PAIR_BYTES // 2), end)
        return _before_slashes(text, began, end - _PAIR_BYTES // 2) if is_half else end
    for back in range(1, min(4, len(text) - began) + 1):
        lead = text[-back]
        if lead >= 0xC0:
            return len(text) - back
        if lead < 0x80:
            break
    return len(text)


def _before_slashes(text: bytearray, began: int, end: int) -> int:
    while end > began and text[end - 1] == ord("\\"):
        end -= 1
    return end


def _whole_from(text: bytearray, at: int) -> int:
    """Where a text can go on at this place or behind it, so that no half character and no half escape is left."""
    while at < len(text) and (text[at - 1] == ord("\\") or 0x80 <= text[at] < 0xC0):
        at += 1
    rest = _REST_OF_PAIR.match(text, at)
    return rest.end() if rest is not None else at


def longest_texts(most: int, *, of_items: bool) -> dict[str, int]:
    """How long the text of each field may be; what is not named may have LONGEST_WORDS."""
    long = ("text", "output", "arguments", "diff", "json") if of_items else ("diff",)
    return {**dict.fromkeys(_NAMES, LONGEST_NAME), "path": LONGEST_PATH, **dict.fromkeys(long, most)}


class Fitting:
    """Makes the data of one event fit, and counts what that costs."""

    def __init__(self, longest: dict[str, int]) -> None:
        self._longest = longest
        self.cut = 0
        """Characters that were left out."""

    def struct(self, data: T) -> T:
        """The same struct with texts that are not too long; itself if it is fine."""
        changed: dict[str, Any] = {}
        for name in data.__struct_fields__:
            value = getattr(data, name)
            if (fit := self._value(value, name)) is not value:
                changed[name] = fit
        return msgspec.structs.replace(data, **changed) if changed else data

    def _value(self, value: Any, name: str) -> Any:
        match value:
            case str():
                return self._text(value, name)
            case JsonPart(json=content):
                return self._json(value, content)
            case msgspec.Struct():
                return self.struct(value)
            case tuple() | list() if value:
                return self._entries(value, name)
            case dict() if value:
                return self._table(value)
            case _:
                return value

    def _json(self, part: JsonPart, content: Any) -> JsonPart:
        """JSON that does not fit is kept as text, for its beginning and its end alone are no JSON."""
        text = msgspec.json.encode(content)
        if len(text) <= self._longest.get("json", LONGEST_WORDS):
            return part
        return JsonPart(json=self._text(text.decode(), "json"))

    def _text(self, text: str, name: str) -> str:
        longest = self._longest.get(name, LONGEST_WORDS)
        if len(text) <= longest or name in _ASKS:
            return text
        self.cut += len(text) - longest
        return without_middle(text, longest)

    def _entries(self, entries: tuple[Any, ...] | list[Any], name: str) -> Any:
        if len(entries) > MOST_ENTRIES:
            self.cut += len(msgspec.json.encode(entries[MOST_ENTRIES:]))
        fit = [self._value(entry, name) for entry in entries[:MOST_ENTRIES]]
        is_fine = len(fit) == len(entries) and all(new is old for new, old in zip(fit, entries, strict=True))
        return entries if is_fine else type(entries)(fit)

    def _table(self, table: dict[str, Any]) -> dict[str, Any]:
        if len(table) > MOST_ENTRIES:
            self.cut += len(msgspec.json.encode(table))
            table = dict(list(table.items())[:MOST_ENTRIES])
        fit = {self._text(name, "name"): self._value(value, name) for name, value in table.items()}
        return table if all(name in fit and fit[name] is value for name, value in table.items()) else fit


def without_middle(text: str, longest: int) -> str:
    """The beginning and the end of a text; two texts that differ still do."""
    if len(text) <= longest:
        return text
    half = longest // 2
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{text[:half]}[{len(text) - 2 * half} characters cut, sha256 {digest}]{text[-half:]}"


def short_name(name: str) -> str:
    """A name or an id as it is kept; the same one always becomes the same."""
    return without_middle(name, LONGEST_NAME)
