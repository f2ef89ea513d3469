"""How bodies are read: JSON or a problem, and names of fields in either case."""

import re
from typing import Any

from litestar import Request
from litestar.exceptions import SerializationException

from ostler.base.errors import InvalidRequest, UnsupportedMedia

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SNAKE = re.compile(r"_([a-z0-9])")
_FREE = frozenset({"labels", "env", "headers", "mcpServers"})
"""Fields whose keys are the client's own words."""
_SENT = "ostler.sent"
_ODD = {"memoryMib": "memoryMiB"}


class TolerantRequest(Request[Any, Any, Any]):
    """Takes camelCase and snake_case names of top-level fields alike."""

    async def json(self) -> Any:
        """The decoded body; a body that is not JSON is the client's mistake."""
        decoded = await self.decoded()
        if not isinstance(decoded, dict):
            return decoded
        return {self.snake(name): value for name, value in decoded.items()}

    @staticmethod
    def snake(name: str) -> str:
        """The name of a top-level field as our structs have it."""
        return _CAMEL.sub(lambda found: f"_{found[1].lower()}", name)

    renamed = snake
    """How names of fields are read."""

    @property
    def was_read(self) -> bool:
        """Whether there is a body, and it was JSON."""
        return _SENT in self.scope["state"]

    @property
    def sent(self) -> Any:
        """The body as it was sent, once it was read."""
        return self.scope["state"][_SENT]

    async def decoded(self) -> Any:
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


class CamelRequest(TolerantRequest):
    """For bodies that are camelCase in all their depth; snake_case is taken too."""

    async def json(self) -> Any:
        """The decoded body with camelCase names."""
        return _camel(await self.decoded())

    @staticmethod
    def renamed(name: str) -> str:
        """How names of fields are read, in any depth."""
        camel = _SNAKE.sub(lambda found: found[1].upper(), name)
        return _ODD.get(camel, camel)


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {CamelRequest.renamed(name): each for name, each in value.items()}
    return {name: each if name in _FREE else _camel(each) for name, each in named.items()}


def _not_json(reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"The body is not valid JSON: {reason}.", errors={"body": [reason]})
