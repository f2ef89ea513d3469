"""Keeps an answer on disk while it comes: one that had come to its end is not asked for again after a crash."""

import os
from pathlib import Path

import msgspec

from ostler.agent.entries import Block
from ostler.agent.models.asking import NO_JSON, Answer, Delta, ModelFailed, Reader


class Recorded:
    """A reader that writes each event down before it looks at it."""

    def __init__(self, reader: Reader, path: Path) -> None:
        self._reader = reader
        path.write_bytes(b"")  # what an earlier try had come to is of no use
        self._path = path

    def feed(self, data: bytes) -> Delta | None:
        """The next event. Raises ModelFailed."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(file, msgspec.json.encode(data) + b"\n")
        finally:
            os.close(file)
        return self._reader.feed(data)

    def answer(self) -> Answer | None:
        """The answer once it is complete."""
        return self._reader.answer()

    def partial(self) -> tuple[Block, ...]:
        """What has been said so far."""
        return self._reader.partial()


def answer_in(path: Path, reader: Reader) -> Answer | None:
    """The answer that was written down; None if it had not come to its end."""
    *lines, _ = path.read_bytes().split(b"\n")
    try:
        for line in lines:
            reader.feed(msgspec.json.decode(line, type=bytes))
    except (ModelFailed, *NO_JSON):
        return None
    return reader.answer()
