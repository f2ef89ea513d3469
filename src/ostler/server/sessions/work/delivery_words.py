"""What a delivery is called and says if nobody writes it: the title of the session, and the agent's last answer."""

import re

from msgspec.structs import replace

from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.delivery import made_by
from ostler.wire.items import Item
from ostler.wire.parts import TextPart
from ostler.wire.sessions import Message
from ostler.wire.workspaces import Deliver

_TITLE_LENGTH = 72
_BODY_LENGTH = 20_000
_FIRST_MESSAGES = 20
_SENTENCE = re.compile(r"(?<=[.!?])\s")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What neither git nor a forge takes in a text."""


async def worded(session: SessionCore, wanted: Deliver) -> Deliver:
    """An order with the words that it leaves open."""
    return replace(
        wanted,
        title=wanted.title or await proposed_title(session),
        body=wanted.body if wanted.body is not None else await proposed_body(session),
    )


async def proposed_title(session: SessionCore) -> str:
    """That of the session; else what was asked first."""
    return _shortened(session.state.title or await _first_prompt(session)) or "Changes by an agent"


async def proposed_body(session: SessionCore) -> str:
    """What the agent said last, which is mostly what it did; else what it was asked for."""
    turn, texts = session.state.last_turn, []
    if turn is not None:
        texts = _texts(await session.reads.messages_since(session.id, turn.first_sequence - 1), "assistant")
    text = texts[-1] if texts else await _first_prompt(session)
    return "\n\n".join(part for part in (_CONTROL.sub("", text)[:_BODY_LENGTH].strip(), made_by(session)) if part)


async def _first_prompt(session: SessionCore) -> str:
    messages, _ = await session.reads.messages(session.id, 0, _FIRST_MESSAGES)
    return next(iter(_texts(messages, "user")), "")


def _texts(messages: list[Message], role: str) -> list[str]:
    items: list[Item] = [message.item for message in messages]
    wanted = [item for item in items if item.kind == "message" and item.role == role]
    texts = ["".join(part.text for part in item.content if isinstance(part, TextPart)) for item in wanted]
    return [text for text in texts if text.strip()]


def _shortened(text: str) -> str:
    """Its first sentence, on one line and not longer than a title."""
    line = " ".join(_SENTENCE.split(_CONTROL.sub("", text).strip().partition("\n")[0])[0].split()).rstrip(".")
    if len(line) <= _TITLE_LENGTH:
        return line
    words = line[: _TITLE_LENGTH - 1].rpartition(" ")[0]
    return f"{words}…" if words else line[:_TITLE_LENGTH]
