"""What travels between a server and a runner: calls of verbs, what came of them, and errors by their code."""

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from ostler.base.errors import InternalError, OstlerError
from ostler.wire.running import ProcessRef

Part = Literal["runner", "registry", "connection", "sink", "workspaces"]
"""The protocols of the seam; a verb belongs to one of them."""


class Call(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """One end wants a verb done by the other."""

    id: int
    to: Part
    verb: str
    arguments: msgspec.Raw
    """The verb's struct of arguments."""
    process: ProcessRef | None = None
    """Of a connection or a sink: which."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """What came of a call."""

    id: int
    result: msgspec.Raw


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """A call raised one of our errors."""

    id: int
    code: str
    fields: dict[str, Any]
    errors: dict[str, list[str]] | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel"):
    """Nobody waits for a call any more; whoever serves it breaks it off and undoes it."""

    id: int


Message = Call | Answer | Failure | Cancel


class Verb(msgspec.Struct, frozen=True):
    """One verb of a protocol, as it travels."""

    name: str
    arguments: type[msgspec.Struct]
    result: Any
    """The type of what it returns."""


def verbs_of(protocol: type) -> dict[str, Verb]:
    """The verbs of a protocol by name; what lives (a sink, a connection) stays where it is and does not travel."""
    methods = {name: method for name, method in vars(protocol).items() if inspect.iscoroutinefunction(method)}
    return {name: _verb(name, method) for name, method in methods.items()}


def _verb(name: str, method: Callable[..., Any]) -> Verb:
    hints, given = get_type_hints(method), inspect.signature(method).parameters
    travelling = {field: kind for field, kind in hints.items() if field != "return" and not _lives(kind)}
    fields = [_field(field, kind, given[field].default) for field, kind in travelling.items()]
    arguments = msgspec.defstruct(name, fields, frozen=True, kw_only=True)
    return Verb(name, arguments, None if _lives(hints["return"]) else hints["return"])


def _field(name: str, kind: Any, default: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    """What has a default, or may be None, can be left out: an earlier version does not send what came later."""
    if default is not inspect.Parameter.empty:
        return name, kind, default
    return (name, kind, None) if NoneType in get_args(kind) else (name, kind)


def _lives(kind: Any) -> bool:
    return getattr(kind, "_is_protocol", False)


def failure(call: int, error: OstlerError) -> Failure:
    """An error, to be sent."""
    return Failure(id=call, code=error.code, fields=error.fields, errors=error.errors)


def error_of(message: Failure) -> OstlerError:
    """The error that was sent; one that only another version knows, or words so, is a bug of ours to whoever asked."""
    kind = _errors().get(message.code, InternalError)
    try:
        return kind(errors=message.errors, **message.fields)
    except (KeyError, TypeError, ValueError):  # of its template, which is filled here
        return InternalError(reference=message.code)


def _errors() -> dict[str, type[OstlerError]]:
    found: dict[str, type[OstlerError]] = {}
    waiting: list[type[OstlerError]] = [OstlerError]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        found = {kind.code: kind for kind in kinds} | found  # one that only narrows another travels as the other
        waiting += kinds
    return found
