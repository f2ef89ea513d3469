"""Words and thoughts of messages: what was said piece by piece, and what the finished message holds beyond that."""

from typing import Literal

from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart

Kind = Literal["reasoning", "text"]


def spoken(part: ContentPart) -> tuple[Kind, str] | None:
    """The words of a part, if it has any."""
    match part:
        case TextPart(text=text) if text:
            return "text", text
        case ReasoningPart(text=text) if text:
            return "reasoning", text
        case _:
            return None


class Speech:
    """What was said of each item so far."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[tuple[Kind, str]]] = {}

    def add(self, item_id: str, kind: Kind, text: str) -> None:
        """One more piece was said."""
        self._pieces.setdefault(item_id, []).append((kind, text))

    def rest(self, item: Item) -> list[tuple[Kind, str]]:
        """What a finished item still has to say, thoughts first; some agents send no pieces."""
        pieces = self._pieces.get(item.item_id, [])
        final = [words for words in map(spoken, item.content) if words is not None]
        kinds: tuple[Kind, ...] = ("reasoning", "text")
        return [(kind, more) for kind in kinds if (more := _beyond(_joined(pieces, kind), _joined(final, kind)))]

    def forget(self, item_id: str) -> None:
        """Everything of it was said."""
        self._pieces.pop(item_id, None)


def _joined(words: list[tuple[Kind, str]], kind: Kind) -> str:
    return "".join(text for found, text in words if found == kind)


def _beyond(sent: str, final: str) -> str:
    """The rest of the final text; all of it if it is another one, nothing if only white space differs."""
    if final.startswith(sent):
        return final[len(sent) :]
    before, after = "".join(sent.split()), "".join(final.split())
    if not after.startswith(before):
        return "" if before.startswith(after) else final
    wanted = len(after) - len(before)
    place = len(final)
    while wanted:
        place -= 1
        wanted -= not final[place].isspace()
    return final[place:]
