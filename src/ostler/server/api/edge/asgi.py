"""The ASGI types, spelled once."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
FLOW_KEY = "ostler.flow"
"""Where the connection leaves in the scope whether it takes more."""
App = Callable[[Scope, Receive, Send], Awaitable[None]]
