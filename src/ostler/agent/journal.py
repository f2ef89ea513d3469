"""The journal of a conversation: lines that are only ever added, one file per turn, below the session's home.

    .ostler-agent/<conversation>/turns/0007.jsonl    the entries of a turn
    .ostler-agent/<conversation>/blobs/<name>        images
    .ostler-agent/<conversation>/calls/<call>/       what a call does, while it has no result (claims.py)
    .ostler-agent/<conversation>/calls/<call>/<call> the journal of its sub-agent
    .ostler-agent/<conversation>/calls/<entry>.<api> what the model answers after an entry, as it comes

A line is written at once and whole, so that it survives the end of the process; a last line without its end is none.
"""

import os
import re
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from ostler.agent.claims import Claim
from ostler.agent.entries import AnyEntry, Begun, Entry, Picture, User
from ostler.agent.models.asking import Answer, Reader
from ostler.agent.models.recording import Recorded, answer_in
from ostler.base.ids import ulid

FOLDER = ".ostler-agent"
_MARKS = ("**/begun", "**/rc", "**/change")
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
        return cls._begun(home / FOLDER / ulid())

    @classmethod
    def _begun(cls, folder: Path) -> "Journal":
        journal = cls(folder)
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
        return cls._resumed(folder)

    @classmethod
    def _resumed(cls, folder: Path) -> "Journal":
        journal = cls(folder)
        segments = sorted((folder / "turns").glob("*.jsonl"))
        journal._turns = len(segments)
        journal.entries = _to_the_tip([entry for segment in segments for entry in _read(segment)])
        return journal

    @property
    def reached(self) -> int:
        """How much is on disk: entries, and what has begun or ended of the calls under way, with their sub-agents."""
        calls = self._folder / "calls"
        marks = sum(1 for pattern in _MARKS for _ in calls.glob(pattern))
        below = sum(path.read_bytes().count(b"\n") for path in calls.glob("*/*/turns/*.jsonl"))
        return len(self.entries) + marks + below

    def sync(self) -> None:
        """Have what was written outlive the machine."""
        os.fdatasync(self._file)

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

    # The turn under way

    def turn_of(self, prompt: str) -> list[AnyEntry] | None:
        """The entries of the turn that a prompt began; None if it was never heard."""
        for index in reversed(range(len(self.entries))):
            entry = self.entries[index]
            if isinstance(entry, User) and not entry.steered:
                return self.entries[index:] if prompt and entry.prompt == prompt else None
        return None

    def go_on(self) -> None:
        """What follows belongs to the last turn; a line that was cut off in it is none."""
        path = self._folder / "turns" / f"{self._turns:04}.jsonl"
        whole = path.read_bytes().rfind(b"\n") + 1
        os.truncate(path, whole)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def claim(self, call: str) -> Claim:
        """What is on disk of a call."""
        return Claim(self._folder / "calls" / call)

    def below(self, call: str) -> "Journal":
        """That of a sub-agent, which is there as long as its call; one that was begun goes on."""
        return self._resumed(self._below(call)) if self.has_below(call) else self._begun(self._below(call))

    def has_below(self, call: str) -> bool:
        """Whether the sub-agent of a call has begun."""
        return any((self._below(call) / "turns").glob("*.jsonl"))

    def _below(self, call: str) -> Path:
        return self._folder / "calls" / call / call

    def recorded(self, reader: Reader, api: str) -> Reader:
        """The reader of an answer to what has been said so far; the answer is kept as it comes."""
        path = self._answer(api)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return Recorded(reader, path)

    def answered(self, reader: Reader, api: str) -> Answer | None:
        """The whole answer that an earlier process got to what has been said so far."""
        path = self._answer(api)
        return answer_in(path, reader) if path.exists() else None

    def has_answer(self, api: str) -> bool:
        """Whether an earlier process got some of an answer."""
        return self._answer(api).exists()

    def forget_answer(self, entry_id: str, api: str) -> None:
        """The answer to what had been said up to an entry is an entry itself."""
        (self._folder / "calls" / f"{entry_id}.{api}").unlink(missing_ok=True)

    def _answer(self, api: str) -> Path:
        return self._folder / "calls" / f"{self.entries[-1].id}.{api}"

    def end_turn(self) -> None:
        """What was kept for the next process is in entries."""
        import shutil  # noqa: PLC0415  the agent is ready before it is loaded

        shutil.rmtree(self._folder / "calls", ignore_errors=True)

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
