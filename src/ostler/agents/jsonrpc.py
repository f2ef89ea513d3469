"""JSON-RPC as translators need it: frames out, and what came in, without any transport."""

from typing import Any, Literal

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Send, Unreadable


class Incoming(msgspec.Struct, frozen=True):
    """Any message of the other side: a request, a notification or a response."""

    method: str | None = None
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: "RpcError | None" = None

    @property
    def kind(self) -> Literal["request", "notification", "response"]:
        """What it is."""
        if self.method is None:
            return "response"
        return "notification" if self.id is None else "request"


class RpcError(msgspec.Struct, frozen=True):
    """Why a request failed."""

    code: int
    message: str
    data: Any = None


_incoming = msgspec.json.Decoder(Incoming)


def read(frame: bytes) -> Incoming:
    """One message, or Unreadable."""
    try:
        return _incoming.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise say.unreadable(error) from error


class Calls:
    """The requests under way: gives each an id and remembers what it was for."""

    def __init__(self, *, member: bool = True) -> None:
        self._member = {"jsonrpc": "2.0"} if member else {}
        self._next = 0
        self._open: dict[int | str, str] = {}

    def request(self, method: str, params: Any) -> Send:
        """A request to send; `settle` tells its method when the response comes."""
        self._next += 1
        self._open[self._next] = method
        return Send(msgspec.json.encode({**self._member, "id": self._next, "method": method, "params": params}))

    def notify(self, method: str, params: Any) -> Send:
        """A notification to send."""
        return Send(msgspec.json.encode({**self._member, "method": method, "params": params}))

    def respond(self, request_id: int | str, result: Any) -> Send:
        """The answer to a request of the other side."""
        return Send(msgspec.json.encode({**self._member, "id": request_id, "result": result}))

    def refuse(self, request_id: int | str, code: int, message: str) -> Send:
        """The refusal of a request of the other side."""
        error = {"code": code, "message": message}
        return Send(msgspec.json.encode({**self._member, "id": request_id, "error": error}))

    def settle(self, response: Incoming) -> str:
        """The method that a response belongs to."""
        method = self._open.pop(response.id, None) if response.id is not None else None
        if method is None:
            raise Unreadable(f"No request {response.id} is open", "$.id")
        return method
