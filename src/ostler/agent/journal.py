"""The journal of a conversation: lines that are only ever added, one file per turn, below the session's home.

    .ostler-agent/<conversation>/turns/0007.jsonl    the entries of a turn
    .ostler-agent/<conversation>/blobs/<name>        images

A line is written at once and whole, so that it survives the end of the process; a last line without its end is none.
"""

import os
import re
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from ostler.agent.entries import AnyEntry, Begun, Entry, Picture
from ostler.base.ids import ulid

FOLDER = ".ostler-agent"
_NAME = re.compile(r"[0-9A-Z]{26}")
_decoder: msgspec.json.Decoder[AnyEntry] = msgspec.json.Decoder(AnyEntry)
_Kind = TypeVar("_Kind", bound=Entry)


class Unreadable(Exception):
    """A journal cannot be gone on with; says where and why."""


class Journal:
    """The conversation of one session; `entries` lead from its beginning to its tip."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries: list[AnyEntry] = []
        self._turns = 0
        self._file = -1

    @property
    def conversation(self) -> str:
        """Its id."""
        return self._folder.name

    @classmethod
    def begin(cls, home: Path) -> "Journal":
        """A new conversation, which is on disk at once."""
        journal = cls(home / FOLDER / ulid())
        for name in ("turns", "blobs"):
            (journal._folder / name).mkdir(parents=True, mode=0o700)
        journal.begin_turn()
        journal.add(Begun)
        return journal

    @classmethod
    def resume(cls, home: Path, conversation: str) -> "Journal | None":
        """One that was begun before; None if it is not there. Raises Unreadable."""
        folder = home / FOLDER / conversation
        if not _NAME.fullmatch(conversation) or not (folder / "turns").is_dir():
            return None
        journal = cls(folder)
        segments = sorted((folder / "turns").glob("*.jsonl"))
        journal._turns = len(segments)
        journal.entries = _to_the_tip([entry for segment in segments for entry in _read(segment)])
        return journal

    def begin_turn(self) -> None:
        """What follows goes into a file of its own: copies of a home share the files that have not changed."""
        self.close()
        self._turns += 1
        path = self._folder / "turns" / f"{self._turns:04}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def add(self, kind: type[_Kind], *, entry_id: str | None = None, **fields: object) -> _Kind:
        """Write the next entry."""
        parent = self.entries[-1].id if self.entries else None
        entry = kind(id=entry_id or ulid(), parent=parent, at=round(time.time(), 3), **fields)
        line = msgspec.json.encode(entry) + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        self.entries.append(entry)  # type: ignore[arg-type]  # every kind of entry is one of AnyEntry
        return entry

    def put(self, mime: str, content: bytes) -> Picture:
        """Keep an image."""
        picture = Picture(mime=mime, blob=ulid())
        path = self._folder / "blobs" / picture.blob
        path.write_bytes(content)
        return picture

    def content(self, picture: Picture) -> bytes:
        """An image that was kept; nothing if its file is gone."""
        path = self._folder / "blobs" / picture.blob
        return path.read_bytes() if path.is_file() else b""

    def close(self) -> None:
        """Nothing more is written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _read(segment: Path) -> list[AnyEntry]:
    *lines, _ = segment.read_bytes().split(b"\n")
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreadable(f"line {number} of {segment.name}: {error}") from error
    return entries


def _to_the_tip(entries: list[AnyEntry]) -> list[AnyEntry]:
    by_id = {entry.id: entry for entry in entries}
    path: list[AnyEntry] = []
    at = entries[-1] if entries else None
    while at is not None:
        path.append(at)
        at = by_id.get(at.parent) if at.parent is not None else None
    return path[::-1]
