"""Names of calls on the wire, and how bytes get there."""

import re
from base64 import b64encode
from collections.abc import Iterable

from ostler.agent.entries import Exchange, Step, calls_of

_USABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def native_ids(steps: Iterable[Step], model: str, api: str) -> dict[str, str]:
    """Our id of every call -> the one that the provider hears: its own, if it is this one's and can be used."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for step in steps:
        if isinstance(step, Exchange):
            is_own = step.assistant.api == api and step.assistant.model == model
            for call in calls_of(step.assistant.blocks):
                fits = is_own and _USABLE.fullmatch(call.native_id) and call.native_id not in taken
                ids[call.id] = call.native_id if fits else f"call_{call.id}"
                taken.add(ids[call.id])
    return ids


def usable_name(name: str) -> str:
    """The name of a tool that was called, which may be of no tool: providers refuse odd ones for ever."""
    return name if _USABLE.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def base64_of(content: bytes) -> str:
    """As JSON carries it."""
    return b64encode(content).decode()
