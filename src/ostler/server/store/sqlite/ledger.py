"""The writer's connection, with the few numbers that every append has to know, so that it need not ask for them."""

import sqlite3

from ostler.server.store.bursts import PACKING, pack
from ostler.server.store.records import Append, AppendResult

Row = tuple[int, str, int, int, bytes, int | None, int | None, int]
_CHUNK = "(?, ?, ?, ?, ?, NULL, ?, ?, ?)"
_MOST_ROWS = 64
_MOST_REMEMBERED = 4096
_COUNT = "SELECT value FROM counters WHERE name = 'position'"


class Ledger(sqlite3.Connection):
    """Counts events within a transaction; what it remembers is what the database holds, and the open transaction adds.

    Only the writer's thread uses it.
    """

    _is_stale = True
    _position = 0

    def begin(self) -> None:
        """Open a transaction."""
        self.execute("BEGIN IMMEDIATE")
        if self._is_stale:
            (self._position,) = self.execute(_COUNT).fetchone()
            self._lasts: dict[str, int] = {}
            self._epochs: dict[str, int] = {}
            self._chunks: list[Row] = []
            self._is_stale = False

    def commit(self) -> None:
        """Make everything of the transaction durable."""
        if self._chunks:
            self._insert_chunks()
            self.execute("UPDATE counters SET value = ? WHERE name = 'position'", (self._position,))
        self.execute("COMMIT")
        if len(self._lasts) > _MOST_REMEMBERED:
            self._lasts.clear()
            self._epochs.clear()

    def rollback(self) -> None:
        """Undo everything of the transaction."""
        self._is_stale = True
        if self.in_transaction:
            self.execute("ROLLBACK")

    def _insert_chunks(self) -> None:
        """All of a transaction in a few statements: each call costs more than a row."""
        while self._chunks:
            count = 1 << (min(len(self._chunks), _MOST_ROWS).bit_length() - 1)  # few different statements are kept
            some, self._chunks = self._chunks[:count], self._chunks[count:]
            rows = ", ".join([_CHUNK] * count)
            self.execute(f"INSERT INTO chunks VALUES {rows}", [value for row in some for value in row])  # noqa: S608

    def attempt(self) -> tuple[int, int]:
        """Begin something that can be undone by itself; `give_up` takes what is returned."""
        self.execute("SAVEPOINT job")
        return self._position, len(self._chunks)

    def give_up(self, before: tuple[int, int]) -> None:
        """Undo what was done since `attempt`."""
        self.execute("ROLLBACK TO job")
        self._position, chunks = before
        del self._chunks[chunks:]
        self._lasts = {session_id: last for _, session_id, _, last, *_ in self._chunks}
        self.forget_epochs()

    def forget_epochs(self) -> None:
        """Sessions changed hands."""
        self._epochs.clear()

    def epoch_of(self, session_id: str) -> int | None:
        """The epoch that a session is had in, None if there is no such session."""
        if session_id not in self._epochs:
            row = self.execute("SELECT epoch FROM owners WHERE session = ?", (session_id,)).fetchone()
            if row is None:
                return None
            self._epochs[session_id] = row[0]
        return self._epochs[session_id]

    def last_of(self, session_id: str) -> int:
        """The sequence of a session's newest event, 0 if it has none."""
        last = self._lasts.get(session_id)
        if last is None:
            (last,) = self.execute("SELECT MAX(last) FROM chunks WHERE session = ?", (session_id,)).fetchone()
        return last or 0

    def add_chunk(self, append: Append) -> AppendResult:
        """Write a burst of events when the transaction ends."""
        self._lasts[append.session_id] = append.last
        self._position += len(append.events)
        progress = append.progress
        body = append.packed or pack(append.session_id, append.events, append.raws)
        self._chunks.append(
            (
                self._position,
                append.session_id,
                append.first,
                append.last,
                body,
                progress.start if progress else None,
                progress.step if progress else None,
                PACKING,
            )
        )
        return AppendResult(self._position, len(body))
