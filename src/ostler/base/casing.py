"""One name in two casings: snake_case in the code and in events, camelCase in REST."""

import re
from typing import TypeVar, overload

import msgspec

from ostler.wire.struct import Answer

T = TypeVar("T", bound=Answer)
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_JOINT = re.compile(r"_([a-z0-9])")


def camel(name: str) -> str:
    """A name in camelCase."""
    return _JOINT.sub(lambda found: found[1].upper(), name)


def snake(name: str) -> str:
    """A name in snake_case."""
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", name)


@overload
def shown_as(kind: type[T], stored: msgspec.Struct) -> T: ...
@overload
def shown_as(kind: type[T], stored: msgspec.Struct | None) -> T | None: ...
def shown_as(kind: type[T], stored: msgspec.Struct | None) -> T | None:
    """What is stored or told in events, in the casing of REST."""
    return None if stored is None else msgspec.convert(stored, kind, from_attributes=True)
