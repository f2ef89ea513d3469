"""The mock agent's stdin and stdout: JSON lines, without threads."""

import json
import os
import select
import sys
import time
from collections import deque

LINGER_SECONDS = 600
"""How long anything outlives the people who wanted it gone."""

Frame = dict[str, object]
_encode = json.JSONEncoder(separators=(",", ":")).encode


def encode(kind: str, fields: Frame) -> bytes:
    """One line of the protocol."""
    return _encode({"type": kind, **fields}).encode() + b"\n"


class Channel:
    """Writes frames at once and reads them with a bounded wait, so that a busy agent can still listen."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._frames: deque[Frame] = deque()
        self.immortal = False
        """Whether the end of stdin is ignored."""

    def send(self, kind: str, **fields: object) -> None:
        """Write one frame."""
        self.write(encode(kind, fields))

    def write(self, data: bytes) -> None:
        """Write raw bytes; a reader that is gone ends the program."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(1, view) :]
        except BrokenPipeError:
            self._leave()

    def receive(self, timeout: float | None) -> Frame | None:
        """The next frame, or None if there was none for so many seconds; None as timeout waits for ever."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._frames:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([0], [], [], left)
            if not readable:
                return None
            self._read()
        return self._frames.popleft()

    def _read(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._leave()
        self._partial += data
        if b"\n" not in data:
            return
        *lines, self._partial = self._partial.split(b"\n")
        self._frames.extend(frame for line in lines if line.strip() and (frame := _decode(line)) is not None)

    def _leave(self) -> None:
        if self.immortal:
            time.sleep(LINGER_SECONDS)
        os._exit(0)


def _decode(line: bytearray) -> Frame | None:
    try:
        frame = json.loads(line)
    except ValueError:
        frame = None
    if isinstance(frame, dict):
        return frame
    sys.stderr.write(f"mock: ignored a line that is no JSON object: {bytes(line[:200])!r}\n")
    return None
