"""Tool calls whose arguments come piece by piece: for readers that want them whole, and before the tool is done."""

import msgspec
from msgspec.structs import replace

from ostler.wire.items import Item
from ostler.wire.parts import ToolCallPart


class Writing:
    """The calls that are being written. Each is given out once, as soon as it is whole."""

    def __init__(self) -> None:
        self._open: dict[str, ToolCallPart] = {}

    def begin(self, item: Item) -> ToolCallPart | None:
        """A call begins; it is whole already unless it has no arguments yet."""
        call = _call_of(item)
        if call is None or call.arguments:
            return call
        self._open[item.item_id] = call
        return None

    def grow(self, item_id: str, delta: ToolCallPart) -> ToolCallPart | None:
        """One more piece; the call if that was the last."""
        if (call := self._open.get(item_id)) is None:
            return None
        call = self._open[item_id] = replace(call, arguments=call.arguments + delta.arguments)
        return self._open.pop(item_id) if _is_whole(call.arguments) else None

    def end(self, item: Item) -> ToolCallPart | None:
        """The call is over; given out if it never was."""
        return _call_of(item) if self._open.pop(item.item_id, None) is not None else None


def _call_of(item: Item) -> ToolCallPart | None:
    return next((part for part in item.content if isinstance(part, ToolCallPart)), None)


def _is_whole(text: str) -> bool:
    if not text.rstrip().endswith(("}", "]")):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
