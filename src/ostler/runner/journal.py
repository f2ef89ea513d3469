"""What the runner decided about one agent process, on disk: with the spool of its output it rebuilds a dialogue.

A translator is pure, so the same frames and the same calls in the same order give the same state, the same events and
the same frames to send. The keeper has the frames; here are the calls, each with the place in the output at which it
was made. A call is written before anything comes of it.
"""

import os
import struct
import time
from pathlib import Path

import msgspec

from ostler.agents.adapter import TurnDone
from ostler.base.errors import StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.private import make_folder, write_file
from ostler.wire.running import AgentSpec, Answer, Prompt

SPEC, CALLS = "spec", "calls"
_LENGTH = struct.Struct("<I")


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


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a process was started with."""

    spec: AgentSpec
    framing: str
    max_frame_bytes: int
    max_item_length: int = 8 * 2**20
    started_at: str


_entries = msgspec.msgpack.Decoder(Entry)
_kept = msgspec.msgpack.Decoder(Kept)


class Journal:
    """The journal of one process in the folder of its spool."""

    def __init__(self, folder: Path) -> None:
        self._calls = os.open(folder / CALLS, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._calls).st_size

    def add(self, call: Call, *, at: int) -> None:
        """Note a call; raises StoreUnavailable, and then nothing was noted."""
        body = msgspec.msgpack.encode(Entry(at, time.monotonic(), call))
        record = _LENGTH.pack(len(body)) + body
        try:
            failpoint("journal.before")
            complete = os.write(self._calls, record) == len(record)
            problem = "the disk is full"
        except OSError as error:
            complete, problem = False, str(error.strerror)
        if not complete:
            os.ftruncate(self._calls, self._size)
            raise StoreUnavailable(reason=f"the agent's journal: {problem}")
        self._size += len(record)
        failpoint("journal.after")

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._calls)


def keep(folder: Path, kept: Kept) -> None:
    """Begin the folder of a process; it holds credentials, so it is for our eyes only."""
    failpoint("folder.before")
    make_folder(folder.parent)
    folder.mkdir(mode=0o700)
    fresh = folder / f"{SPEC}.new"
    write_file(fresh, msgspec.msgpack.encode(kept))
    fresh.replace(folder / SPEC)
    failpoint("folder.after")


def read_kept(folder: Path) -> Kept | None:
    """What the process was started with; None if its start came to nothing."""
    try:
        return _kept.decode((folder / SPEC).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def read_calls(folder: Path) -> list[Entry]:
    """All calls in order; one that was cut off while it was written led to nothing and is forgotten."""
    try:
        data = (folder / CALLS).read_bytes()
    except FileNotFoundError:
        return []
    entries: list[Entry] = []
    end = 0
    while end + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, end)
        start = end + _LENGTH.size
        if start + length > len(data):
            break
        try:
            entries.append(_entries.decode(data[start : start + length]))
        except msgspec.DecodeError:
            break  # a power cut may keep a file's length and lose its last bytes, which are zeros then
        end = start + length
    if end < len(data):
        os.truncate(folder / CALLS, end)
    return entries
