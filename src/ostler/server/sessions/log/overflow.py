"""What is still written when a session's log is full: how things end, but no more of their content."""

from collections.abc import Sequence

import msgspec

from ostler.wire.events import ItemCompletedData, ItemDeltaData, ItemStartedData, TerminalOutputData, TurnEndedData
from ostler.wire.items import Item
from ostler.wire.parts import StatusPart
from ostler.wire.running import Draft

LOG_FULL = "log_full"
_CUT = StatusPart(label="cut", detail="Its content is not kept: the log is full (max_log_bytes).")


def thinned(drafts: Sequence[Draft]) -> list[Draft]:
    """The events of an agent that has not heard yet that it should stop."""
    return [draft for draft in drafts if _thin(draft)]


def _thin(draft: Draft) -> bool:
    draft.raw = None
    match draft.data:
        case ItemDeltaData() | TerminalOutputData():
            return False
        case ItemStartedData(item=item):
            draft.data = ItemStartedData(item=_emptied(item))
        case ItemCompletedData(item=item):
            draft.data = ItemCompletedData(item=_emptied(item))
        case TurnEndedData() as end:
            draft.data = msgspec.structs.replace(end, outcome="failed", stop_reason=LOG_FULL)
        case _:
            pass
    return True


def _emptied(item: Item) -> Item:
    return msgspec.structs.replace(item, content=(_CUT,))
