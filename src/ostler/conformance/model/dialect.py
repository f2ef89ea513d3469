"""What every dialect does, and what they share."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from ostler.conformance.model.actions import Call, Reply, Say, Think, Wait
from ostler.conformance.model.conversation import Conversation, Json


@dataclass
class Frame:
    """One server-sent event, optionally preceded by a pause."""

    data: Json | str
    event: str | None = None
    pause: float = 0.0


class Dialect(ABC):
    """One wire protocol: how to read a request and how to write a reply."""

    @abstractmethod
    def parse(self, body: Json, path: str) -> Conversation: ...

    @abstractmethod
    def stream(self, reply: Reply, conv: Conversation) -> Iterator[Frame]: ...

    @abstractmethod
    def whole(self, reply: Reply, conv: Conversation) -> Json: ...

    @abstractmethod
    def error(self, status: int) -> Json: ...

    @abstractmethod
    def broken_off(self, words: str) -> Frame:
        """An error in the middle of a stream."""
        ...


def _new_id(prefix: str) -> str:
    return f"{prefix}_{time.time_ns():x}{threading.get_ident() % 0xFFFF:x}"


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _usage(reply: Reply, conv: Conversation) -> tuple[int, int]:
    if conv.counted is not None:
        return conv.counted[0], _made(reply)
    spent = conv.system + "".join(t.text + "".join(t.results) for t in conv.turns)
    return _tokens(spent), _made(reply)


def _made(reply: Reply) -> int:
    return _tokens(
        "".join(
            b.text if isinstance(b, Say | Think) else json.dumps(b.arguments)
            for b in reply.blocks
            if not isinstance(b, Wait)
        )
    )


def _cached(conv: Conversation) -> int:
    return conv.counted[1] if conv.counted is not None else 0


def _signature(conv: Conversation, text: str) -> str:
    """What only this model can have said of this text; the same for all while nobody looks."""
    return signature(conv.model, text) if conv.signs else "c2NyaXB0ZWQ="


def signature(model: str, text: str) -> str:
    """The signature of a model under a text."""
    return base64.b64encode(hashlib.sha256(f"{model} {text}".encode()).digest()[:12]).decode()


def _chunks(block: Say | Think) -> Iterator[tuple[str, float]]:
    """The pieces a text is streamed in, with the pause before each."""
    words = re.findall(r"\S+\s*|\s+", block.text)
    interval = block.interval if isinstance(block, Say) else 0.0
    if not interval and len(words) > 40:  # keep long texts to a few frames
        size = len(words) // 20 + 1
        words = ["".join(words[i : i + size]) for i in range(0, len(words), size)]
    for word in words:
        yield word, interval


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def _paced(reply: Reply) -> Iterator[tuple[Say | Think | Call, float]]:
    """The reply's blocks, each with the wait that precedes it."""
    pause = 0.0
    for block in reply.blocks:
        if isinstance(block, Wait):
            pause += block.seconds
        else:
            yield block, pause
            pause = 0.0
