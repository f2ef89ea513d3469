"""What the runner decided about one agent process, on disk: with the spool of its output it rebuilds a dialogue.

A translator is pure, so the same frames and the same calls in the same order give the same state, the same events and
the same frames to send. The keeper has the frames; here are the calls, each with the place in the output at which it
was made. A call is written before anything comes of it.

Nothing here is synced, so that a prompt does not wait for the disk: what a server acknowledged is in its database. A
kill needs no sync, and after a power cut nobody replays a folder that may have lost a part (survey.py).
"""

import errno
import os
import struct
import time
import zlib
from pathlib import Path

import msgspec

from ostler.agents.adapter import TurnDone
from ostler.base.errors import AgentLost, StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.private import make_folder, write_file
from ostler.wire.running import AgentSpec, Answer, Prompt

log = Log(__name__)
SPEC, CALLS = "spec", "calls"
_MARK = b"\xc1ent"
"""Begins a record; neither UTF-8 nor msgpack has its first byte."""
_HEAD = struct.Struct("<4sII")
"""Mark, length and checksum of a record; a checksum of these follows, so that a length is never believed in vain."""
_SUM = struct.Struct("<I")
_LENGTH = struct.Struct("<I")
"""All that stood before a record in earlier versions; the journal of an agent that outlives an upgrade begins so."""
_LONGEST_OLD = 2**28


class Opened(msgspec.Struct, frozen=True, tag="open"):
    """The handshake began."""


class Prompted(msgspec.Struct, frozen=True, tag="prompt"):
    """A turn began."""

    prompt: Prompt


class Steered(msgspec.Struct, frozen=True, tag="steer"):
    """A turn got another message."""

    prompt: Prompt


class Answered(msgspec.Struct, frozen=True, tag="answer"):
    """A decision was handed over."""

    answer: Answer


class Ended(msgspec.Struct, frozen=True, tag="end"):
    """We want the turn to end."""

    end: TurnDone
    overdue: float | None = None
    """How many seconds were too many, if it took too long."""


class Frozen(msgspec.Struct, frozen=True, tag="freeze"):
    """Time stands still."""


class Thawed(msgspec.Struct, frozen=True, tag="thaw"):
    """Time goes on."""


Call = Opened | Prompted | Steered | Answered | Ended | Frozen | Thawed


class Entry(msgspec.Struct, frozen=True):
    """One call."""

    at: int
    """How many bytes of the output had been fed before."""
    time: float
    """Of the clock that runs since boot: keepers do not outlive a boot either."""
    call: Call


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a process was started with."""

    spec: AgentSpec
    framing: str
    max_frame_bytes: int
    max_item_length: int = 8 * 2**20
    started_at: str


_entries = msgspec.msgpack.Decoder(Entry)
_start_record = msgspec.msgpack.Decoder(StartRecord)


class Journal:
    """The journal of one process in the folder of its spool."""

    def __init__(self, folder: Path) -> None:
        self._calls = os.open(folder / CALLS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._calls).st_size
        self._has_half = False

    def add(self, call: Call, *, at: int) -> None:
        """Note a call; raises StoreUnavailable, and then nothing was noted."""
        body = msgspec.msgpack.encode(Entry(at, time.monotonic(), call))
        head = _HEAD.pack(_MARK, len(body), zlib.crc32(body))
        record = head + _SUM.pack(zlib.crc32(head)) + body
        try:
            failpoint("journal.before")
            self._append(record)
        except OSError as error:
            raise StoreUnavailable(reason=f"the agent's journal: {error.strerror}") from error
        self._size += len(record)
        failpoint("journal.after")

    def _append(self, record: bytes) -> None:
        """Write all of it; a half would be glued to what comes next."""
        if self._has_half:
            os.ftruncate(self._calls, self._size)
        self._has_half = True
        if os.write(self._calls, record) < len(record):
            os.ftruncate(self._calls, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._has_half = False

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._calls)


def write_start_record(folder: Path, record: StartRecord) -> None:
    """Begin the folder of a process; it holds credentials, so it is for our eyes only."""
    failpoint("folder.before")
    make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    fresh = folder / f"{SPEC}.new"
    write_file(fresh, msgspec.msgpack.encode(record))
    fresh.replace(folder / SPEC)
    failpoint("folder.after")


def read_start_record(folder: Path) -> StartRecord | None:
    """What the process was started with; None if its start came to nothing."""
    try:
        return _start_record.decode((folder / SPEC).read_bytes())
    except (OSError, ValueError):
        return None


def read_calls(folder: Path) -> list[Entry]:
    """All calls in order; one that was cut off while it was written led to nothing and is forgotten.

    Raises AgentLost if any other cannot be read: the agent heard it, and without it nothing after it is understood.
    """
    try:
        data = (folder / CALLS).read_bytes()
    except FileNotFoundError:
        return []
    entries: list[Entry] = []
    end = 0
    try:
        first = data.find(_MARK) if _MARK in data else len(data)
        while found := _old_entry(data, end, first) if end < first else _entry(data, end):
            entry, end = found
            entries.append(entry)
    except ValueError as error:
        log.error("journal.damaged", folder=str(folder), at=end, reason=str(error))
        raise AgentLost(reason="what the server had noted of its turns is damaged.") from error
    if end < len(data):
        log.warning("journal.cut_off", folder=str(folder), at=end)
        os.truncate(folder / CALLS, end)
    return entries


def _entry(data: bytes, at: int) -> tuple[Entry, int] | None:
    """The entry at a place and where the next one begins; None where the file ends before it does."""
    start = at + _HEAD.size + _SUM.size
    if start > len(data) and _MARK.startswith(data[at : at + len(_MARK)]):
        return None
    head = data[at : at + _HEAD.size]
    if data[start - _SUM.size : start] != _SUM.pack(zlib.crc32(head)):
        raise ValueError("the checksum of a head is wrong")
    _, length, checksum = _HEAD.unpack(head)
    body = data[start : start + length]
    if len(body) < length:
        return None
    if zlib.crc32(body) != checksum:
        raise ValueError("a checksum is wrong")
    return _entries.decode(body), start + length


def _old_entry(data: bytes, at: int, first: int) -> tuple[Entry, int] | None:
    """The same of an earlier version; `first` is where the first entry of this one begins."""
    start = at + _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, at) if start <= len(data) else (0,)
    if start + length <= first:
        return _entries.decode(data[start : start + length]), start + length
    if first < len(data) or length > _LONGEST_OLD:
        raise ValueError("a length is wrong")
    return None
