"""Messages and usage of an ACP agent: pieces without ends become items, and counts of many shapes become one."""

from base64 import b64decode
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.acp.frames import Image, Meta, Prompted, Tokens, Usage
from ostler.wire.events import Cost, UsageUpdatedData
from ostler.wire.items import Item
from ostler.wire.parts import ReasoningPart, TextPart
from ostler.wire.running import Draft

Piece = TextPart | ReasoningPart


class Messages:
    """The message under way; it ends when something else begins, for the protocol has no end of a message."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._count = 0
        self._open: Item | None = None

    def say(self, piece: Piece, message_id: str | None, parent_id: str | None) -> list[Draft]:
        """A piece of a message; another id or another sub-agent is another message."""
        if not piece.text:
            return []
        drafts: list[Draft] = []
        if self._open is not None and (self._open.native_item_id, self._open.parent_id) != (message_id, parent_id):
            drafts += self.close()
        if self._open is None:
            self._open = self._fresh(message_id, parent_id)
            drafts.append(say.opened(self._open))
        return [*drafts, say.grown(self._open.item_id, piece, message_id)]

    def show(self, image: Image, message_id: str | None, parent_id: str | None) -> list[Draft]:
        """A picture is a message of its own; one that cannot be read is what is known of it."""
        content = _content(image)
        if content is None:
            where = f"[picture]({image.uri})" if image.uri else "(a picture that cannot be shown)"
            return self.say(TextPart(text=where), message_id, parent_id)
        return [*self.close(), say.pictured(self._fresh(message_id, parent_id), content, image.mime_type)]

    def close(self) -> list[Draft]:
        """Something else begins; what the message said is what its pieces said."""
        if self._open is None:
            return []
        item, self._open = self._open, None
        return [say.closed(item, "completed")]

    def _fresh(self, message_id: str | None, parent_id: str | None) -> Item:
        self._count += 1
        return say.message(f"itm_{self._start}_message_{self._count}", message_id, parent_id)


def _content(image: Image) -> bytes | None:
    try:
        return b64decode(image.data, validate=True) or None
    except ValueError:  # no base64, or cut because it was too long
        return None


class Spent:
    """What a turn has cost so far."""

    def __init__(self) -> None:
        self._data = UsageUpdatedData()

    def context(self, update: Usage) -> list[Draft]:
        """How full the context is."""
        cost = None if update.cost is None else Cost(amount=update.cost.amount, currency=update.cost.currency)
        return self._changed(context_used=update.used, context_window=update.size, cost=cost or self._data.cost)

    def call(self, meta: Meta | None) -> list[Draft]:
        """One more model call, where the agent tells in an extension."""
        tokens = _tokens((meta or {}).get("usage"))
        return [] if tokens is None else self._add(tokens)

    def turn(self, answer: Prompted) -> list[Draft]:
        """The turn's own sum, or what one of several extensions says instead."""
        quota = (answer.meta or {}).get("quota")
        counted = quota.get("token_count") if isinstance(quota, dict) else None
        tokens = answer.usage or _tokens(counted)
        return [] if tokens is None else self._add(tokens)

    def _add(self, tokens: Tokens) -> list[Draft]:
        data = self._data
        return self._changed(
            input_tokens=_sum(data.input_tokens, tokens.input_tokens),
            output_tokens=_sum(data.output_tokens, tokens.output_tokens),
            cached_input_tokens=_sum(data.cached_input_tokens, tokens.cached_read_tokens),
            reasoning_tokens=_sum(data.reasoning_tokens, tokens.thought_tokens),
        )

    def _changed(self, **fields: Any) -> list[Draft]:
        before, self._data = self._data, msgspec.structs.replace(self._data, **fields)
        return [] if self._data == before else [Draft("usage.updated", self._data)]


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more


def _tokens(usage: Any) -> Tokens | None:
    """Counts in camelCase or snake_case; None when it is something else."""
    if not isinstance(usage, dict):
        return None
    plain = {name.replace("_", "").lower(): value for name, value in usage.items()}
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "thoughtTokens")
    found = {name: plain[name.lower()] for name in names if isinstance(plain.get(name.lower()), int)}
    return msgspec.convert(found, Tokens) if found else None
