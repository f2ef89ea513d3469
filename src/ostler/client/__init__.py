"""The Python SDK: `AsyncClient` and its synchronous twin `Client`; a name is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostler.client.aio import AsyncClient, AsyncSession, AsyncTurn
    from ostler.client.errors import (
        BadAddress,
        BadAnswer,
        BadName,
        BadToken,
        ClientError,
        ConnectionLost,
        MissingEvents,
        NoAnswer,
        OstlerApiError,
        QuestionUnanswered,
        ServerUnreachable,
        TokenExposed,
        TurnTimeout,
    )
    from ostler.client.events import EventBatch, SessionEvent
    from ostler.client.sync import Client, SyncSession, SyncTurn

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "AsyncTurn",
    "BadAddress",
    "BadAnswer",
    "BadName",
    "BadToken",
    "Client",
    "ClientError",
    "ConnectionLost",
    "EventBatch",
    "MissingEvents",
    "NoAnswer",
    "OstlerApiError",
    "QuestionUnanswered",
    "ServerUnreachable",
    "SessionEvent",
    "SyncSession",
    "SyncTurn",
    "TokenExposed",
    "TurnTimeout",
]
_EXPORTS = {
    "ostler.client.aio": ("AsyncClient", "AsyncSession", "AsyncTurn"),
    "ostler.client.sync": ("Client", "SyncSession", "SyncTurn"),
    "ostler.client.events": ("EventBatch", "SessionEvent"),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load what was asked for: a plain command must not pay for asyncio and httpx."""
    if name not in __all__:
        raise AttributeError(f"module 'ostler.client' has no attribute '{name}'")
    return getattr(import_module(_MODULES.get(name, "ostler.client.errors")), name)
