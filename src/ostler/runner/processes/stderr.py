"""Keeps the beginning and the end of what an agent writes to stderr, within bounded memory."""

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self

from ostler.runner.processes.logins import hidden
from ostler.wire.items import StderrOutput

HEAD_LINES = 20
TAIL_LINES = 50
LINE_BYTES = 2000
_LAST_LINES = 5


class StderrLog:
    """Takes stderr as it comes; tells its first and last lines."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._lines = 0
        self._partial = b""
        self._partial_size = 0

    @classmethod
    def of_file(cls, file: Path, *, dropped_lines: int) -> Self:
        """What a keeper has kept; it tells how many lines in the middle it dropped."""
        made = cls()
        with suppress(FileNotFoundError):  # it never came so far
            made.feed(file.read_bytes())
        made._lines += dropped_lines
        return made

    def feed(self, chunk: bytes) -> None:
        """Take more output, cut anywhere."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._grow(line)
            self._keep(self._shown())
            self._partial, self._partial_size = b"", 0
        self._grow(rest)

    def _grow(self, piece: bytes) -> None:
        self._partial += piece[: LINE_BYTES - len(self._partial)]
        self._partial_size += len(piece)

    def _shown(self) -> bytes:
        cut = self._partial_size - len(self._partial)
        return self._partial + b" ... (%d more bytes)" % cut if cut else self._partial

    def _keep(self, line: bytes) -> None:
        self._lines += 1
        if self._lines <= HEAD_LINES:
            self._head.append(line)
        else:
            self._tail.append(line)

    def output(self) -> StderrOutput:
        """All lines when they are few, else the first 20 and the last 50."""
        unfinished = [self._shown()] if self._partial_size else []
        total = self._lines + len(unfinished)
        if total <= HEAD_LINES + TAIL_LINES:
            return StderrOutput(truncated=False, head=_text([*self._head, *self._tail, *unfinished]), total_lines=total)
        tail = [*self._tail, *unfinished][-TAIL_LINES:]
        return StderrOutput(truncated=True, head=_text(self._head), tail=_text(tail), total_lines=total)

    def last_words(self) -> bytes:
        """The newest lines as they are, for whoever looks for a question in them."""
        return b"\n".join([*([*self._head, *self._tail][-_LAST_LINES:]), self._partial])

    def last_line(self) -> str:
        """The last line that says something, for one-line messages."""
        unfinished = [self._shown()] if self._partial_size else []
        filled = [line for line in [*self._head, *self._tail, *unfinished] if line.strip()]
        return _text(filled[-1:]).strip()


def _text(lines: list[bytes]) -> str:
    return hidden(b"\n".join(lines)).decode(errors="replace")
