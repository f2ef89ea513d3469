"""Everything that is wrong with a request at once, under the names that its client used."""

from collections.abc import Iterator
from typing import Any, cast, get_args, get_origin

import msgspec
from litestar import Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter

from ostler.base.casing import camel, snake
from ostler.base.errors import InvalidRequest
from ostler.server.api.requests import TolerantRequest
from ostler.server.api.shapes import chosen_type, fields_of, has_tag, is_list, is_struct

Fault = tuple[str, str]
"""A field and what is wrong with it."""
_GIVEN = frozenset(
    {"services", "caller", "project", "openapi", "request", "socket", "data", "scope", "headers", "state"}
)
"""Parameters of handlers that do not come from the query."""
_AT = " - at `$"
_PLAINLY = {"Expected `str` of length >= 1": "must not be empty"}
_QUERY_NAMES = "ostler.query_names"
ANY_QUERY = "any_query"
"""The option of a handler whose clients may add to the query what they like."""


async def before_handling(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Runs before every handler; what it gives is the answer. Litestar would run a plain function in a thread."""
    if request.method == "OPTIONS":  # Litestar's own answer forgets methods that another router adds to the path
        template = request.scope["path_template"]
        same = [route for route in request.app.routes if route.path_format == template]
        methods = {str(method) for route in same for method in route.methods or ()}
        return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
    if request.scope["query_string"]:
        known = [asked for asked, _ in _query_names(request.route_handler, request.path_params)]
        _take_either_casing(cast(dict[str, Any], request.scope), known)
        _refuse_unknown_query(request, known)
    return None


def _take_either_casing(scope: dict[str, Any], known: list[str]) -> None:
    """Name query parameters as the handler does, and remember what the client called them."""
    other = {spelling: name for name in known for spelling in (camel(name), snake(name)) if spelling != name}
    pairs = [pair.partition("=") for pair in scope["query_string"].decode("latin-1").split("&")]
    scope[_QUERY_NAMES] = {other[name]: name for name, _, _ in pairs if name in other}
    if scope[_QUERY_NAMES]:
        query = "&".join(other.get(name, name) + equals + value for name, equals, value in pairs)
        scope["query_string"] = query.encode("latin-1")


def _refuse_unknown_query(request: Request[Any, Any, Any], known: list[str]) -> None:
    """A filter that nobody knows would be ignored in silence, so it is refused."""
    if request.method != "GET" or request.route_handler.opt.get(ANY_QUERY):
        return
    reason = f"is not known here; known are: {', '.join(sorted(known)) or 'none'}"
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        listed = "; ".join(f"{name} {reason}" for name in unknown)
        errors = {name: [reason] for name in unknown} | {name: [fault] for name, fault in _query_faults(request)}
        raise InvalidRequest(reason=f"The query parameter {listed}.", errors=errors)


def spelled(request: Request[Any, Any, Any], name: str) -> str:
    """A query parameter as its client wrote it."""
    names: dict[str, str] = cast(dict[str, Any], request.scope).get(_QUERY_NAMES, {})
    return names.get(name, name)


def faults_of(request: Request[Any, Any, Any]) -> dict[str, list[str]]:
    """What is wrong with the query and the body of a request; empty if that is something else."""
    found: dict[str, list[str]] = {}
    for field, message in (*_query_faults(request), *_body_faults(request)):
        found.setdefault(field, []).append(message)
    return found


def _query_names(handler: BaseRouteHandler, path_names: Any) -> Iterator[tuple[str, str]]:
    """The names of the query parameters: for clients, and in the handler."""
    for name, parameter in handler.parsed_fn_signature.parameters.items():
        about = parameter.kwarg_definition
        is_header = isinstance(about, HeaderParameter) or getattr(about, "header", None) is not None
        if name not in _GIVEN and name not in path_names and not is_header:
            yield getattr(about, "query", None) or getattr(about, "name", None) or name, name


def _query_faults(request: Request[Any, Any, Any]) -> Iterator[Fault]:
    kinds = {field.name: field.type for field in msgspec.structs.fields(request.route_handler.signature_model)}
    for asked, name in _query_names(request.route_handler, request.path_params):
        if asked in request.query_params:
            yield from _wrong(request.query_params[asked], kinds[name], spelled(request, asked))


def _body_faults(request: Request[Any, Any, Any]) -> Iterator[Fault]:
    parameter = request.route_handler.parsed_fn_signature.parameters.get("data")
    if parameter is not None and isinstance(request, TolerantRequest) and request.was_read:
        yield from _walk(request.sent, parameter.annotation, "")


def _walk(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    """Go through a value as its type does, and say of each piece that does not fit where it is."""
    chosen = chosen_type(value, kind)
    if isinstance(value, dict) and is_struct(chosen) and has_tag(value, chosen):
        yield from _in_struct(value, chosen, path)
    elif isinstance(value, list) and is_list(chosen):
        for index, each in enumerate(value):
            yield from _walk(each, get_args(chosen)[0], f"{path}[{index}]")
    elif isinstance(value, dict) and get_origin(chosen) is dict:
        for name, each in value.items():
            yield from _walk(each, get_args(chosen)[1], _below(path, name))
    else:
        yield from _wrong(value, kind, path)


def _in_struct(value: dict[str, Any], kind: type[msgspec.Struct], path: str) -> Iterator[Fault]:
    fields = fields_of(kind)
    for name, each in value.items():
        if name in fields:
            yield from _walk(each, fields[name].type, _below(path, name))
        elif kind.__struct_config__.forbid_unknown_fields and name != kind.__struct_config__.tag_field:
            yield _below(path, name), "is not a known field"
    given = {fields[name].name for name in value if name in fields}
    for name in dict.fromkeys(field.name for field in fields.values() if field.required):
        if name not in given:
            yield _below(path, name), "is required"


def _wrong(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(_AT)
        yield (path + place.rstrip("`")).lstrip(".") or "body", _PLAINLY.get(message, message)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
