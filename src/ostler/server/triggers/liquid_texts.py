"""Texts in Liquid, filled from events of strangers: no code, no files, no clock, and a bound for everything.

Imported where there is such a text: what this needs would make every server 6 MB larger and slower to start.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO, cast

import msgspec
from liquid import BoundTemplate, Environment, RenderContext, StrictDefaultUndefined
from liquid.builtin.output import Output, OutputNode
from liquid.exceptions import LiquidError
from liquid.stringify import to_liquid_string

from ostler.server.triggers.mapping import LiquidFault, marked

_MOST_OUTPUT = 100_000
_MOST_SECONDS = 2.0
"""Of the processor, for all texts of one event: a large event makes a short text expensive."""
_LONGEST_WORD = 64
_TAGS = frozenset(
    ["content", "output", "illegal", "if", "unless", "case", "for", "break", "continue", "assign", "comment", "#"]
)
_FILTERS = frozenset(
    [
        "default",
        "upcase",
        "downcase",
        "capitalize",
        "strip",
        "squish",
        "truncate",
        "truncatewords",
        "first",
        "last",
        "size",
        "map",
        "where",
        "split",
        "slice",
        "uniq",
        "sort",
        "url_encode",
        "append",
        "prepend",
        "plus",
        "minus",
    ]
)
OUTSIDE = "outside"
"""The variable that says how words from outside are marked."""


class _Outside(OutputNode):
    """What stands between braces came from outside: it is marked, unless it is one plain word."""

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        return buffer.write(_marked(to_liquid_string(_plain(self.expression.evaluate(context)), False), context))


class _Output(Output):
    node_class = _Outside


_ends: ContextVar[float | None] = ContextVar("ends", default=None)


@contextmanager
def in_time() -> Iterator[None]:
    """What is filled in this block, by this thread, takes a bounded time together."""
    if _ends.get() is not None:
        yield
        return
    token = _ends.set(time.thread_time() + _MOST_SECONDS)
    try:
        yield
    finally:
        _ends.reset(token)


class _Context(RenderContext):
    """Looks at the clock whenever a text names something, so also in a loop that says nothing."""

    def get(self, *path: Any, **named: Any) -> Any:
        _check_time()
        return super().get(*path, **named)

    def filter(self, *name: Any, **named: Any) -> Any:
        _check_time()
        return super().filter(*name, **named)


def _check_time() -> None:
    ends = _ends.get()
    if ends is not None and time.thread_time() > ends:
        raise LiquidError(f"takes more than {_MOST_SECONDS:g} seconds with this event", token=None)


class _Template(BoundTemplate):
    context_class = _Context


class _Environment(Environment):
    template_class = _Template
    context_depth_limit = 5
    block_nesting_limit = 10
    loop_iteration_limit = 1000
    output_stream_limit = _MOST_OUTPUT
    local_namespace_limit = _MOST_OUTPUT


def _plain(value: Any) -> Any:
    """Lists and mappings are shown as JSON, not as Python has them."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def _marked(text: str, context: RenderContext) -> str:
    mark = cast(str | None, context.globals.get(OUTSIDE))
    is_word = len(text) <= _LONGEST_WORD and all(each.isalnum() or each in "_./:#@+-" for each in text)
    return text if mark is None or is_word else marked(text, mark)


@functools.cache
def _environment() -> Environment:
    made = _Environment(undefined=StrictDefaultUndefined)
    known = made.filters
    made.filters = {name: known[name] for name in _FILTERS} | {
        "json": lambda value: msgspec.json.encode(value).decode(),
        "join": _bounded_join,
        "replace": _bounded_replace,
        "uniq": _uniq,
    }
    made.tags = {name: tag for name, tag in made.tags.items() if name in _TAGS}
    made.add_tag(_Output)
    return made


def _uniq(value: Any, key: Any = None) -> list[Any]:
    """The first of those that are alike; the library compares each with all others."""
    found: dict[bytes, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        same = each.get(key) if key is not None and isinstance(each, dict) else each
        found.setdefault(msgspec.json.encode(_plain(same)), each)
    return list(found.values())


def _bounded_join(value: Any, between: Any = " ") -> str:
    parts = [str(_plain(each)) for each in value] if isinstance(value, list) else [str(value)]
    text = str(between)
    _bounded(sum(map(len, parts)) + len(text) * len(parts))
    return text.join(parts)


def _bounded_replace(value: Any, old: Any, new: Any = "") -> str:
    text, before, after = str(value), str(old), str(new)
    _bounded(len(text) + (text.count(before) if before else len(text) + 1) * len(after))
    return text.replace(before, after)


def _bounded(length: int) -> None:
    if length > _MOST_OUTPUT:
        raise LiquidError(f"a filter would make more than {_MOST_OUTPUT} characters", token=None)


@functools.lru_cache(maxsize=256)
def _template(source: str) -> Any:
    return _environment().from_string(source)


def fault_of(source: str) -> str | None:
    """Why a text is no Liquid; None if it is."""
    used: set[str] = set()
    if (reason := _trying(lambda: used.update(_template(source).analyze().filters))) is not None:
        return reason
    unknown = sorted(used - set(_environment().filters))
    return f"has a filter '{unknown[0]}', which is not known" if unknown else None


def filled(source: str, context: Mapping[str, Any], mark: str | None = None) -> str:
    """The text with what the event says; raises LiquidFault. Without a mark nothing is marked. Takes a while."""
    found = ""

    def render() -> None:
        nonlocal found
        found = str(_template(source).render(**context, **({OUTSIDE: mark} if mark is not None else {})))

    if (reason := _trying(render)) is not None:
        raise LiquidFault(reason)
    return found


def _trying(do: Callable[[], object]) -> str | None:
    try:
        with in_time():
            do()
    except LiquidError as error:
        return str(error.message)[:500]
    except (ArithmeticError, ValueError, TypeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"[:500]
    return None
