"""A folded transcript as text."""

from collections.abc import Sequence

from ostler.cli.output import clean
from ostler.cli.terminal.text import item_call, item_result, item_text, result_gist, tool_title
from ostler.wire.items import Item
from ostler.wire.sessions import Message


def transcript(messages: Sequence[Message]) -> str:
    """One block per message, in order."""
    return "\n".join(filter(None, (_block(message.item) for message in messages)))


def _block(item: Item) -> str:
    call = item_call(item)
    match item.kind:
        case "tool_call" if call is not None:
            return f"tool       {tool_title(call)}"
        case "tool_result":
            return f"result     {'failed: ' if item.status == 'failed' else ''}{result_gist(item_result(item))}"
        case _:
            text = clean(item_text(item)).strip().replace("\n", "\n" + " " * 11)
            return f"{item.role or item.kind:<10} {text}" if text else ""
