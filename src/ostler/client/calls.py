"""A call to the API as a value: what to send and how to read the answer, shared by both clients."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

from ostler import __version__
from ostler.base.casing import camel
from ostler.base.ids import new_id
from ostler.client.errors import BadAnswer, BadName, OstlerApiError
from ostler.wire.problems import Problem

API = "/api/v1"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Value = str | int | bool | None | tuple[str, ...]
T = TypeVar("T")
AsyncAnswer = Coroutine[Any, Any, T]
Answer = Annotated[T, "at once"]
"""What the verbs of the two clients give; `make schema` puts the second where the first stands."""
_problem = msgspec.json.Decoder(Problem)
_STRANGE = "Check the address, and whatever stands between."


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One operation, ready to be sent."""

    method: Method
    path: str
    decode: Callable[[bytes], T]
    params: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    also_answers: tuple[int, ...] = ()
    """Statuses that carry the answer although they say that something is wrong."""
    timeout: float | None = None
    """Seconds, when the client's own limit does not fit."""
    media_type: str = "application/json"
    """What the body is."""

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no harm: POST carries an Idempotency-Key."""
        return self.method != "DELETE"


def get(path: str, decode: Callable[[bytes], T], /, **params: Value) -> Call[T]:
    """Read something."""
    return Call(method="GET", path=API + path, decode=decode, params=_params(params))


def post(
    path: str, decode: Callable[[bytes], T], body: msgspec.Struct | None = None, *, timeout: float | None = None
) -> Call[T]:
    """Do something."""
    return Call(method="POST", path=API + path, decode=decode, body=_json(body), timeout=timeout)


def patch(path: str, decode: Callable[[bytes], T], body: msgspec.Struct) -> Call[T]:
    """Change something."""
    return Call(method="PATCH", path=API + path, decode=decode, body=_json(body))


def put(path: str, decode: Callable[[bytes], T], content: bytes | msgspec.Struct, /, **params: Value) -> Call[T]:
    """Put something in its place; bytes are sent as they are."""
    if isinstance(content, msgspec.Struct):
        return Call(method="PUT", path=API + path, decode=decode, params=_params(params), body=_json(content))
    return Call(
        method="PUT",
        path=API + path,
        decode=decode,
        params=_params(params),
        body=content,
        media_type="application/octet-stream",
    )


def delete(path: str) -> Call[None]:
    """Remove something."""
    return Call(method="DELETE", path=API + path, decode=_nothing)


def segment(value: str) -> str:
    """A value as one piece of a path; a name that would change the path is refused."""
    if value in {"", ".", ".."}:
        raise BadName(value)
    return quote(value, safe=":")


def headers(token: str | None, project: str | None = None) -> dict[str, str]:
    """What every request of a client carries."""
    always = {"user-agent": f"ostler-python/{__version__}", "accept": "application/json"}
    if project is not None:
        always["ostler-project"] = project
    return always if token is None else {**always, "authorization": f"Bearer {token}"}


def headers_of(call: Call[T]) -> dict[str, str]:
    """What this request carries besides; asked once per call, so that a retry keeps its key."""
    given = {} if call.body is None else {"content-type": call.media_type}
    return {**given, "idempotency-key": new_id("idem")} if call.method == "POST" else given


def answer(call: Call[T], status: int, response_headers: Mapping[str, str], body: bytes) -> T:
    """Read the answer with these headers, or raise the problem it tells of."""
    content_type = response_headers.get("content-type", "")
    is_problem = content_type.startswith("application/problem+json")
    if not 200 <= status < 300 and (is_problem or status not in call.also_answers):
        raise api_error(status, content_type, body)
    try:
        return call.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswer(f"{call.method} {call.path}: {error}", response_headers.get("ostler-version")) from error


def api_error(status: int, content_type: str, body: bytes) -> OstlerApiError:
    """The problem of an answer; something in between may have sent a page instead."""
    try:
        return OstlerApiError(_problem.decode(body))
    except msgspec.MsgspecError:
        text = body.decode("utf-8", "replace")[:200].strip() if content_type.startswith("text/plain") else ""
        message = f": {text.rstrip('.')}" if text else ""
        detail = f"The server answered with status {status}{message}, and not as Ostler does. {_STRANGE}"
        return OstlerApiError(
            Problem(type="about:blank", title="HTTP error", status=status, code=f"http_{status}", detail=detail)
        )


def _nothing(body: bytes) -> None:
    if body:  # such as the page of something else that answers at this address
        raise msgspec.DecodeError("there should be nothing in it")


def _json(body: msgspec.Struct | None) -> bytes | None:
    return None if body is None else msgspec.json.encode(body)


def _params(params: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    return tuple((camel(name), text) for name, value in params.items() for text in _texts(value))


def _texts(value: Value) -> tuple[str, ...]:
    match value:
        case None:
            return ()
        case bool():
            return ("true" if value else "false",)
        case tuple():
            return value
        case _:
            return (str(value),)
