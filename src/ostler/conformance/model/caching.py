"""How much of a request a provider would have found in its cache."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from ostler.conformance.model.conversation import Json

_LEAST = 1024
_STEP = 128
_LOOK_BACK = 20


@dataclass(frozen=True)
class _Unit:
    """A piece of a request: tools, then the system, then each block."""

    text: str
    is_marked: bool


class Cache:
    """Remembers the beginnings of requests; Anthropic only those that end at a mark, others all."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def count(self, body: Json) -> tuple[int, int]:
        """Tokens of a request, and how many were cached."""
        units = list(_units(body))
        sizes, prefixes = _prefixes(units)
        marks = [index for index, unit in enumerate(units) if unit.is_marked]
        is_anthropic = "system" in body
        ends = marks if is_anthropic else list(range(len(units)))
        reach = (
            {back for end in ends for back in range(max(0, end - _LOOK_BACK), end + 1)} if is_anthropic else set(ends)
        )
        with self._lock:
            hits = [sizes[index] for index in reach if prefixes[index] in self._known]
            self._known |= {prefixes[index] for index in ends if sizes[index] >= _LEAST}
        hit = max(hits, default=0)
        return (sizes[-1] if sizes else 0), hit if is_anthropic else hit // _STEP * _STEP


def _prefixes(units: list[_Unit]) -> tuple[list[int], list[str]]:
    sizes, prefixes = [], []
    digest, total = hashlib.sha256(), 0
    for unit in units:
        digest.update(unit.text.encode())
        total += max(1, len(unit.text) // 4)
        sizes.append(total)
        prefixes.append(digest.hexdigest())
    return sizes, prefixes


def _units(body: Json) -> Iterator[_Unit]:
    for name in ("tools", "system", "systemInstruction", "instructions", "messages", "input", "contents"):
        found = body.get(name) or ()
        for each in [found] if isinstance(found, dict | str) else found:
            yield from _blocks(name, each)


def _blocks(name: str, each: Json | str) -> Iterator[_Unit]:
    inner = each.get("content") or each.get("parts") if isinstance(each, dict) else None
    if name in {"messages", "contents"} and isinstance(inner, list):
        for block in inner:
            yield _unit([name, each.get("role"), block])  # type: ignore[union-attr]  # only a dict has something inside
        return
    yield _unit([name, each])


def _unit(found: list[object]) -> _Unit:
    last = found[-1]
    is_marked = isinstance(last, dict) and "cache_control" in last
    if isinstance(last, dict):
        found = [*found[:-1], {name: value for name, value in last.items() if name != "cache_control"}]
    return _Unit(json.dumps(found), is_marked)
