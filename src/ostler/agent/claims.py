"""What is on disk of a call that changes something, so that the next process neither does it twice nor forgets it.

.ostler-agent/<conversation>/calls/<call>/begun     a command has begun; whoever makes this file runs it
.ostler-agent/<conversation>/calls/<call>/out       what it has printed, as far as the agent has read it
.ostler-agent/<conversation>/calls/<call>/rc        how it ended, written by its own shell
.ostler-agent/<conversation>/calls/<call>/change    what a file will hold, and the answer that tells of it
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

_WRAPPER = 'set -C; : 2>/dev/null >"$1/begun" || exit 0; bash -c "$2"; code=$?; echo $code >"$1/rc"; exit $code'


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a command that an earlier process had begun."""

    printed: bytes
    code: int | None
    """None if it was cut off."""


class Claim:
    """The folder of one call; it is made when there is something to keep."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_begun(self) -> bool:
        """Whether an earlier process did something of it."""
        return (self._folder / "begun").exists() or (self._folder / "change").exists()

    # Commands

    def wrapped(self, command: str) -> Sequence[str]:
        """The command, in a shell that claims it and writes down how it ended."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return ("bash", "-c", _WRAPPER, "bash", str(self._folder), command)

    def begin(self) -> None:
        """It is done by something that cannot claim it itself."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._folder / "begun").touch()

    def hear(self, data: bytes) -> None:
        """It has printed this."""
        with (self._folder / "out").open("ab", buffering=0) as out:
            out.write(data)

    def left(self) -> Left | None:
        """What an earlier process left; None if it had not begun."""
        if not (self._folder / "begun").exists():
            return None
        code, out = self._folder / "rc", self._folder / "out"
        words = code.read_text().strip() if code.exists() else ""
        return Left(printed=out.read_bytes() if out.exists() else b"", code=int(words) if words.isdecimal() else None)

    # Files

    def intend(self, content: bytes, answer: bytes) -> None:
        """A file is about to hold this; the answer is what is said when it does."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._folder / "change.new"
        fresh.write_bytes(_digest(content) + b"\n" + answer)
        fresh.rename(self._folder / "change")

    def done(self, content: bytes | None) -> bytes | None:
        """The answer, if the file holds what it was to hold."""
        intended = self._folder / "change"
        if content is None or not intended.exists():
            return None
        digest, _, answer = intended.read_bytes().partition(b"\n")
        return answer if digest == _digest(content) else None

    def forget(self) -> None:
        """Its result is in the journal."""
        import shutil  # noqa: PLC0415  the agent is ready before it is loaded

        shutil.rmtree(self._folder, ignore_errors=True)


def _digest(content: bytes) -> bytes:
    import hashlib  # noqa: PLC0415  the agent is ready before it is loaded

    return hashlib.sha256(content).hexdigest().encode()
