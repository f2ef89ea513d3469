"""The two bases of all wire structs."""

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something we send; a field that is absent equals its default. Unknown fields are ignored when reading."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something a client sends; a misspelt field is an error, not a surprise."""
