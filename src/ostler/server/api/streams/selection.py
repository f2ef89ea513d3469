"""Which events of a log a client wants to see; only as much of them is decoded as that needs."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from litestar.params import Parameter

from ostler.base.errors import InvalidRequest
from ostler.server.store.records import StoredEvent
from ostler.wire.events import EVENTS

Keep = Callable[[bytes], bool]
Types = Annotated[str | None, Parameter(description="Only events of these types, separated by commas.")]
Folded = Annotated[bool, Parameter(description="Leave out the deltas of items that the page also has complete.")]


class _Typed(msgspec.Struct):
    type: str


class _Item(msgspec.Struct):
    item_id: str = ""


class _Data(msgspec.Struct):
    item: _Item | None = None
    item_id: str = ""


class _Peek(msgspec.Struct):
    data: _Data


_typed = msgspec.json.Decoder(_Typed)
_peek = msgspec.json.Decoder(_Peek)


def types_filter(types: str | None) -> Keep | None:
    """Whether an encoded event is of one of these types; None keeps all."""
    if types is None:
        return None
    wanted = frozenset(name.strip() for name in types.split(",") if name.strip())
    for name in wanted:
        if name not in EVENTS:
            reason = f"'{name[:50]}' is not a type of event"
            raise InvalidRequest(reason=f"types: {reason}.", errors={"types": [reason]})
    return lambda body: _typed.decode(body).type in wanted


def folded(events: list[StoredEvent]) -> list[StoredEvent]:
    """Without the deltas of items that are complete further on; starts stay, since they say what came first."""
    remaining: list[StoredEvent] = []
    complete: set[str] = set()
    for event in reversed(events):
        kind = _typed.decode(event.body).type
        if kind == "item.delta" and _item_id(event.body) in complete:
            continue
        if kind == "item.completed":
            complete.add(_item_id(event.body))
        remaining.append(event)
    return remaining[::-1]


def _item_id(body: bytes) -> str:
    data = _peek.decode(body).data
    return data.item.item_id if data.item else data.item_id
