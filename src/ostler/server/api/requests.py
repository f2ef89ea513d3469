"""How the body and the query of a request are read, and everything that is wrong with them at once."""

import functools
import types
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Union, cast, get_args, get_origin

import msgspec
from litestar import Request, Response
from litestar.exceptions import SerializationException
from litestar.handlers import BaseRouteHandler
from litestar.params import HeaderParameter

from ostler.base.casing import camel, snake
from ostler.base.errors import InvalidRequest, UnsupportedMedia

_SENT = "ostler.sent"


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


class TolerantRequest(Request[Any, Any, Any]):
    """Takes camelCase and snake_case names of fields alike."""

    async def json(self) -> Any:
        """The decoded body with the names of its type; a body that is not JSON is the client's mistake."""
        expected = self.route_handler.parsed_fn_signature.parameters.get("data")
        decoded = await self._decoded()
        return respelled(decoded, expected.annotation) if expected is not None else decoded

    @property
    def was_read(self) -> bool:
        """Whether there is a body, and it was JSON."""
        return _SENT in self.scope["state"]

    @property
    def sent(self) -> Any:
        """The body as it was sent, once it was read."""
        return self.scope["state"][_SENT]

    async def _decoded(self) -> Any:
        """The body as it was sent."""
        media_type = self.content_type[0].lower()
        if media_type and media_type != "application/json" and not media_type.endswith("+json"):
            raise UnsupportedMedia(given=media_type, possible="application/json")
        try:
            sent = await super().json()
        except (SerializationException, UnicodeDecodeError) as error:
            raise _not_json(str(error).removeprefix("JSON is malformed: ")) from error
        except RecursionError:
            raise _not_json("It is nested too deeply") from None
        self.scope["state"][_SENT] = sent  # what is in there is forgotten when a stream begins
        return sent


def _not_json(reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"The body is not valid JSON: {reason}.", errors={"body": [reason]})


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
