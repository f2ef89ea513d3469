"""The bases of all wire structs. Casing belongs to the struct: what REST says and takes is camelCase."""

import msgspec


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something we send; a field that is absent equals its default. Unknown fields are ignored when reading."""


class Answer(Wire, frozen=True, kw_only=True, rename="camel"):
    """What an endpoint below /api/v1 answers."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something a client sends; a misspelt field is an error, not a surprise."""


class Body(Request, frozen=True, kw_only=True, rename="camel"):
    """What an endpoint below /api/v1 takes; names of fields may be in snake_case too."""
