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
_ODD = {"memoryMib": "memoryMiB"}


class TolerantRequest(Request[Any, Any, Any]):
    """Takes camelCase and snake_case names of top-level fields alike."""

    async def json(self) -> Any:
        """The decoded body; a body that is not JSON is the client's mistake."""
        decoded = await self.decoded()
        if not isinstance(decoded, dict):
            return decoded
        return {_CAMEL.sub(lambda found: f"_{found[1].lower()}", name): value for name, value in decoded.items()}

    async def decoded(self) -> Any:
        """The body as it was sent."""
        media_type = self.content_type[0].lower()
        if media_type and media_type != "application/json" and not media_type.endswith("+json"):
            raise UnsupportedMedia(given=media_type, possible="application/json")
        try:
            return await super().json()
        except (SerializationException, UnicodeDecodeError) as error:
            raise _not_json(str(error).removeprefix("JSON is malformed: ")) from error
        except RecursionError:
            raise _not_json("It is nested too deeply") from None


class CamelRequest(TolerantRequest):
    """For bodies that are camelCase in all their depth; snake_case is taken too."""

    async def json(self) -> Any:
        """The decoded body with camelCase names."""
        return _camel(await self.decoded())


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    named = {_SNAKE.sub(lambda found: found[1].upper(), name): each for name, each in value.items()}
    return {_ODD.get(name, name): each if name in _FREE else _camel(each) for name, each in named.items()}


def _not_json(reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"The body is not valid JSON: {reason}.", errors={"body": [reason]})
