"""Bounds every text that an agent can put into an event: names, messages, and lists of them."""

import hashlib
from typing import Any, TypeVar

import msgspec

from ostler.wire.parts import JsonPart

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
T = TypeVar("T", bound=msgspec.Struct)


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
