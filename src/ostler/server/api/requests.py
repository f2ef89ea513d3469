"""How bodies are read: JSON or a problem, and names of fields in either casing."""

from typing import Any

from litestar import Request
from litestar.exceptions import SerializationException

from ostler.base.errors import InvalidRequest, UnsupportedMedia
from ostler.server.api.shapes import respelled

_SENT = "ostler.sent"


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
