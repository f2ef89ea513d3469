"""Filters of triggers: paths into an event, each with the values that it may have. No code and no expressions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ostler.wire.triggers import Pattern

_MOST_PATHS, _MOST_VALUES, _DEEPEST = 100, 100, 20
_ROOTS = ("event", "headers", "delivery")


def faults_of(pattern: Pattern) -> dict[str, list[str]]:
    """What is wrong with a filter, by field."""
    faults: dict[str, list[str]] = {}
    if len(pattern) > _MOST_PATHS:
        faults["filter"] = [f"has more than {_MOST_PATHS} paths"]
    for path, wanted in pattern.items():
        root, _, rest = path.partition(".")
        if root not in _ROOTS or not rest or path.count(".") > _DEEPEST:
            faults[f"filter.{path[:80]}"] = [f"is no path: begin with {', '.join(f'{each}.' for each in _ROOTS)}"]
        elif not wanted or len(wanted) > _MOST_VALUES:
            faults[f"filter.{path[:80]}"] = [f"must name 1 to {_MOST_VALUES} values"]
        elif (reason := next(filter(None, map(_fault, wanted)), None)) is not None:
            faults[f"filter.{path[:80]}"] = [reason]
    return faults


def _fault(wanted: Any) -> str | None:
    if isinstance(wanted, list):
        return "holds a list; name its values one by one"
    if not isinstance(wanted, dict):
        return None
    if len(wanted) != 1 or next(iter(wanted)) not in _OPERATORS:
        return f"an operator is one of {', '.join(_OPERATORS)}"
    name, value = next(iter(wanted.items()))
    fits = {
        "prefix": isinstance(value, str),
        "suffix": isinstance(value, str),
        "equals-ignore-case": isinstance(value, str),
        "exists": isinstance(value, bool),
        "numeric": _is_comparison(value),
        "anything-but": not isinstance(value, dict),
    }
    return None if fits[name] else f"{name} cannot be {value!r:.80}"


def _is_comparison(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in {2, 4}:
        return False
    return all(isinstance(each, str) and each in _COMPARISONS for each in value[::2]) and all(
        map(_is_number, value[1::2])
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def mismatch(pattern: Pattern, context: Mapping[str, Any]) -> str | None:
    """The first path whose value does not fit; None if all do."""
    for path, wanted in pattern.items():
        found = list(_values(context, path.split(".")))
        if not any(_fits(each, found) for each in wanted):
            return path
    return None


def _values(value: Any, path: list[str]) -> Iterator[Any]:
    """What is at a path; each member of a list counts."""
    if isinstance(value, list):
        for each in value:
            yield from _values(each, path)
    elif not path:
        yield value
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])


def _fits(wanted: Any, found: list[Any]) -> bool:
    if not isinstance(wanted, dict):
        return any(_equal(each, wanted) for each in found)
    name, value = next(iter(wanted.items()))
    return _OPERATORS[name](found, value)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _anything_but(found: list[Any], value: Any) -> bool:
    refused = value if isinstance(value, list) else [value]
    return bool(found) and not any(_equal(each, bad) for each in found for bad in refused)


def _numeric(found: list[Any], value: list[Any]) -> bool:
    pairs = list(zip(value[::2], value[1::2], strict=True))
    return any(_is_number(each) and all(_COMPARISONS[how](each, to) for how, to in pairs) for each in found)


def _texts(found: list[Any], fits: Callable[[str], bool]) -> bool:
    return any(isinstance(each, str) and fits(each) for each in found)


_COMPARISONS: dict[Any, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}
_OPERATORS: dict[str, Callable[[list[Any], Any], bool]] = {
    "prefix": lambda found, value: _texts(found, lambda text: text.startswith(value)),
    "suffix": lambda found, value: _texts(found, lambda text: text.endswith(value)),
    "equals-ignore-case": lambda found, value: _texts(found, lambda text: text.casefold() == value.casefold()),
    "anything-but": _anything_but,
    "exists": lambda found, value: bool(found) == value,
    "numeric": _numeric,
}
