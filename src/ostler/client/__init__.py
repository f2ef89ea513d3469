"""The Python SDK: `AsyncClient` and its synchronous twin `Client`."""

from ostler.client.aio import AsyncClient, AsyncSession
from ostler.client.errors import (
    BadAnswer,
    BadName,
    ClientError,
    ConnectionLost,
    MissingEvents,
    NoAnswer,
    OstlerApiError,
    ServerUnreachable,
)
from ostler.client.events import EventBatch, SessionEvent
from ostler.client.sync import Client, SyncSession

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "BadAnswer",
    "BadName",
    "Client",
    "ClientError",
    "ConnectionLost",
    "EventBatch",
    "MissingEvents",
    "NoAnswer",
    "OstlerApiError",
    "ServerUnreachable",
    "SessionEvent",
    "SyncSession",
]
