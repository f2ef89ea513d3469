"""A body beside the type it should have: which type each piece is meant for, and what its fields are called."""

import functools
import types
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec

from ostler.base.casing import camel


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    """On the wire."""
    type: Any
    required: bool


@functools.cache
def fields_of(kind: type[msgspec.Struct]) -> dict[str, Field]:
    """The fields of a struct by every name that clients may use: its own, and the same in the other casing."""
    found: dict[str, Field] = {}
    for field in msgspec.structs.fields(kind):
        about = Field(field.encode_name, field.type, field.required)
        found |= dict.fromkeys((field.name, camel(field.name), field.encode_name), about)
    return found


def respelled(value: Any, kind: Any) -> Any:
    """A value with the names of fields as its type has them, in any depth; the client's own words stay."""
    if not isinstance(value, dict | list):
        return value
    chosen = chosen_type(value, kind)
    if isinstance(value, list):
        return [respelled(each, get_args(chosen)[0]) for each in value] if is_list(chosen) else value
    if is_struct(chosen):
        fields = fields_of(chosen)
        known = {name: fields.get(name, Field(name, Any, False)) for name in value}
        return {field.name: respelled(value[name], field.type) for name, field in known.items()}
    if get_origin(chosen) is dict:
        return {name: respelled(each, get_args(chosen)[1]) for name, each in value.items()}
    return value


def chosen_type(value: Any, kind: Any) -> Any:
    """Of several types the one that the value was meant for, if that is plain."""
    if get_origin(kind) is Annotated:
        return chosen_type(value, get_args(kind)[0])
    if get_origin(kind) not in {Union, types.UnionType}:
        return kind
    options = [chosen_type(value, option) for option in get_args(kind)]
    fitting = [option for option in options if _may_be(value, option)]
    return fitting[0] if len(fitting) == 1 else kind


def _may_be(value: Any, kind: Any) -> bool:
    if isinstance(value, dict):
        return get_origin(kind) is dict or (is_struct(kind) and has_tag(value, kind))
    return isinstance(value, list) and is_list(kind)


def is_struct(kind: Any) -> bool:
    """Whether a type is one of ours."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def is_list(kind: Any) -> bool:
    """Whether a type is that of a JSON array."""
    return get_origin(kind) in {list, tuple}


def has_tag(value: dict[str, Any], kind: type[msgspec.Struct]) -> bool:
    """Whether the value says that it is of this kind; kinds without a tag need not say so."""
    tag = kind.__struct_config__.tag
    return tag is None or value.get(str(kind.__struct_config__.tag_field)) == tag
