"""Directives of the mock agent that misbehave."""

import os
import sys
import time

from ostler.programs.mock.channel import encode
from ostler.programs.mock.talk import number
from ostler.programs.mock.turn import BadDirective, Limited, Turn

UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}
MESSAGE_BYTES = 64 * 1024
DELTA_BYTES = 4 * 1024
GARBAGE = (
    b'{"type": "text", "id": \n',
    b'{"type": "title", "title": "\xff\xfe\x80"}\n',
    b"[1, 2, 3]\n",
    b'{"type": "surprise", "id": 1}\n',
)


def size(text: str) -> int:
    """A number of bytes such as 500, 64k or 10m."""
    unit = text[-1:].lower()
    digits = text[:-1] if unit in UNITS else text
    return int(number(digits, "a size like 500, 64k or 10m") * UNITS.get(unit, 1))


def garbage(turn: Turn, _: str) -> None:
    """Write four lines nobody can understand: no JSON, no UTF-8, no object, no known type."""
    for line in GARBAGE:
        turn.agent.channel.write(line)


def flood(turn: Turn, text: str) -> None:
    """Send so many bytes of text as fast as the reader takes them, in messages of 64 KiB."""
    left = size(text)
    while left > 0:
        amount = min(left, MESSAGE_BYTES)
        whole, rest = divmod(amount, DELTA_BYTES)
        turn.stream(["x" * DELTA_BYTES] * whole + ["x" * rest] * (rest > 0), 0)
        turn.end_message()
        left -= amount


def bigframe(turn: Turn, text: str) -> None:
    """Send one message as one frame of exactly this size, its line end not counted."""
    turn.end_message()
    message = turn.agent.next_id()
    bare = len(_whole(message, "")) - 1
    wanted = size(text)
    if wanted < bare:
        raise BadDirective(f"A frame has at least {bare} bytes.")
    turn.agent.channel.write(_whole(message, "x" * (wanted - bare)))


def _whole(message: int, text: str) -> bytes:
    return encode("message", {"id": message, "parts": [{"kind": "text", "text": text}]})


def limit(turn: Turn, text: str) -> None:
    """Fail by a limit that ends after so many seconds, and say when; once it is over, go on.

    With `every time` behind the number, the next one begins at once.
    """
    seconds, _, more = text.partition(" ")
    memory, now = turn.agent.memory, time.time()
    if memory.limit is None or (more and memory.limit <= now):
        memory.set_limit(now + number(seconds, "a number of seconds"))
    if memory.limit is not None and memory.limit > now:
        raise Limited(memory.limit)
    memory.set_limit(None)


def stderr(turn: Turn, text: str) -> None:
    """Write numbered lines to stderr."""
    for line in range(1, int(number(text, "a number of lines")) + 1):
        sys.stderr.write(f"mock: stderr line {line}\n")
    sys.stderr.flush()
    turn.pause(0)


def crash(turn: Turn, text: str) -> None:
    """End the process in the middle of the turn."""
    code = int(number(text or "1", "an exit code"))
    turn.pause(0)
    sys.stderr.write(f"mock: something went badly wrong\nmock: giving up with exit code {code}\n")
    sys.stderr.flush()
    os._exit(code & 255)


def hang(turn: Turn, text: str) -> None:
    """Say a last word, if given, then ignore everything but signals and the end of stdin."""
    if text:
        turn.grow("text", text)
    while True:
        turn.agent.channel.receive(None)
