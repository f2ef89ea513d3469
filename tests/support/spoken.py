"""What the agent said, read from the messages of each protocol."""

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def _acp(updates: list[Json]) -> str:
    return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk")


def _agui(events: list[Json]) -> str:
    begun = [each for each in events if each["type"] == "TEXT_MESSAGE_START"]
    ours = {each["messageId"] for each in begun if each["role"] == "assistant"}
    grown = [each for each in events if each["type"] == "TEXT_MESSAGE_CONTENT"]
    return "".join(each["delta"] for each in grown if each["messageId"] in ours)


def _workflow(messages: list[Json]) -> str:
    tokens = [each["data"]["data"] for each in messages if each["event"] == "Token"]
    return "".join(token for token in tokens if isinstance(token, str))


def _ui(chunks: list[Json]) -> str:
    return "".join(each["delta"] for each in chunks if each["type"] == "text-delta")


def _daemon(events: list[Json]) -> str:
    items = [each["data"]["item"] for each in events if each["type"] == "item.completed"]
    ours = [item for item in items if item["kind"] == "message" and item.get("role") == "assistant"]
    return "".join(part["text"] for item in ours for part in item["content"] if part["type"] == "text")


SPOKEN: dict[str, Callable[[list[Json]], str]] = {
    "acp": _acp,
    "acp2": _acp,
    "agui": _agui,
    "workflow": _workflow,
    "ui": _ui,
    "daemon": _daemon,
    "universal": _daemon,
}
"""By the name of the format; the daemon API shows finished items as the log does."""
