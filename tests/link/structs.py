"""Values of any type that crosses the link, made up by hypothesis."""

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from ostler.wire.events import EVENTS
from ostler.wire.running import Draft

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_WHOLE = st.integers(-(2**53), 2**53)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | _WHOLE | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type; every struct in it is filled in."""
    return _of(inspect.type_info(kind))


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.Metadata(type=inner):
            return _of(inner)
        case inspect.AnyType():
            return _ANYTHING
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(1 if info.ge is not None or info.gt is not None else -(2**53), 2**53)
        case inspect.FloatType():
            return (
                st.floats(0.5, 1e9)
                if info.gt is not None or info.ge is not None
                else st.floats(allow_nan=False, allow_infinity=False)
            )
        case inspect.StrType(min_length=shortest):
            return _TEXT.filter(lambda text: len(text) >= shortest) if shortest else _TEXT
        case inspect.BytesType():
            return st.binary(max_size=8)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.UnionType(types=types):
            return st.one_of([_of(one) for one in types])
        case inspect.VarTupleType(item_type=item, min_length=fewest):
            return st.lists(_of(item), min_size=fewest or 0, max_size=2).map(tuple)
        case inspect.TupleType(item_types=items):
            return st.tuples(*map(_of, items))
        case inspect.ListType(item_type=item):
            return st.lists(_of(item), max_size=2)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=2)
        case inspect.StructType(cls=cls):
            return _struct(cls)
        case _:
            raise NotImplementedError(f"no values of {info}")


def drafts(name: str) -> st.SearchStrategy[Draft]:
    """Drafts of one type of event."""
    data = values_of(EVENTS[name].__annotations__["data"])
    raw = st.none() | st.binary(max_size=8)
    return st.builds(
        Draft, st.just(name), data, synthetic=st.booleans(), raw=raw, time=st.none() | _TEXT, actor=st.none() | _TEXT
    )


@cache
def _struct(cls: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    if cls is Draft:
        return st.sampled_from(sorted(EVENTS)).flatmap(drafts)
    # late, so that a struct may hold its own kind
    return st.deferred(lambda: st.builds(cls, **{field.name: _of(field.type) for field in _fields(cls)}))


def _fields(cls: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return info.fields
