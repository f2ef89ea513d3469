"""Everything that is wrong with a request at once, under the names that its client used."""

import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec
from litestar import Request, Response
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.requests import TolerantRequest

Fault = tuple[str, str]
"""A field and what is wrong with it."""
Rename = Callable[[str], str]
_GIVEN = frozenset({"services", "project", "openapi", "request", "socket", "data", "scope", "headers", "state"})
"""Parameters of handlers that do not come from the query."""
_AT = " - at `$"
ANY_QUERY = "any_query"
"""The option of a handler whose clients may add to the query what they like."""


async def before_handling(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Runs before every handler; what it gives is the answer. Litestar would run a plain function in a thread."""
    if request.method == "OPTIONS":  # Litestar's own answer forgets methods that another router adds to the path
        template = request.scope["path_template"]
        same = [route for route in request.app.routes if route.path_format == template]
        methods = {str(method) for route in same for method in route.methods or ()}
        return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
    _refuse_unknown_query(request)
    return None


def _refuse_unknown_query(request: Request[Any, Any, Any]) -> None:
    """A filter that nobody knows would be ignored in silence, so it is refused."""
    if request.method != "GET" or request.route_handler.opt.get(ANY_QUERY):
        return
    known = {asked for asked, _ in _query_names(request.route_handler, request.path_params)}
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        return
    reason = f"is not known here; known are: {', '.join(sorted(known)) or 'none'}"
    errors = {spelled(request, name): [reason] for name in unknown}
    told = "; ".join(f"{name} {reason}" for name in errors)
    raise InvalidRequest(reason=f"The query parameter {told}.", errors=errors)


def spelled(request: Request[Any, Any, Any], name: str) -> str:
    """A query parameter as its client wrote it."""
    names: dict[str, str] = cast(dict[str, Any], request.scope).get("ostler.query_names", {})
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
    if parameter is None or not isinstance(request, TolerantRequest) or not request.was_read:
        return
    kind = request.route_handler.resolve_request_class()  # the request given here is of the application's own class
    rename = kind.renamed if issubclass(kind, TolerantRequest) else request.renamed
    yield from _walk(request.sent, parameter.annotation, "", rename)


def _walk(value: Any, kind: Any, path: str, rename: Rename) -> Iterator[Fault]:
    """Go through a value as its type does, and say of each piece that does not fit where it is."""
    chosen = _chosen(value, kind)
    if isinstance(value, dict) and _is_struct(chosen) and _has_tag(value, chosen):
        yield from _in_struct(value, chosen, path, rename)
    elif isinstance(value, list) and get_origin(chosen) in {list, tuple}:
        for index, each in enumerate(value):
            yield from _walk(each, get_args(chosen)[0], f"{path}[{index}]", rename)
    elif isinstance(value, dict) and get_origin(chosen) is dict:
        for name, each in value.items():
            yield from _walk(each, get_args(chosen)[1], _below(path, name), _same)
    else:
        yield from _wrong(value, kind, path)


def _chosen(value: Any, kind: Any) -> Any:
    """Of several types the one that the value was meant for, if that is plain."""
    if get_origin(kind) is Annotated:
        return _chosen(value, get_args(kind)[0])
    if get_origin(kind) not in {Union, types.UnionType}:
        return kind
    options = [_chosen(value, option) for option in get_args(kind)]
    fitting = [option for option in options if _may_be(value, option)]
    return fitting[0] if len(fitting) == 1 else kind


def _may_be(value: Any, kind: Any) -> bool:
    if isinstance(value, dict):
        return get_origin(kind) is dict or (_is_struct(kind) and _has_tag(value, kind))
    return isinstance(value, list) and get_origin(kind) in {list, tuple}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _has_tag(value: dict[str, Any], kind: type[msgspec.Struct]) -> bool:
    """Whether the value says that it is of this kind; kinds without a tag need not say so."""
    tag = kind.__struct_config__.tag
    return tag is None or value.get(str(kind.__struct_config__.tag_field)) == tag


def _in_struct(value: dict[str, Any], kind: type[msgspec.Struct], path: str, rename: Rename) -> Iterator[Fault]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given = {rename(name): name for name in value}
    deeper = rename if rename is not TolerantRequest.snake else _same
    for name, spelt in given.items():
        if name in fields:
            yield from _walk(value[spelt], fields[name].type, _below(path, spelt), deeper)
        elif kind.__struct_config__.forbid_unknown_fields and name != kind.__struct_config__.tag_field:
            yield _below(path, spelt), "is not a known field"
    for name, field in fields.items():
        if field.required and name not in given:
            yield _below(path, name), "is required"


def _wrong(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(_AT)
        yield (path + place.rstrip("`")).lstrip(".") or "body", message


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _same(name: str) -> str:
    return name
