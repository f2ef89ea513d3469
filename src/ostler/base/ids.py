"""Identifiers: ULIDs with a prefix that says what they name, and the rule for client-chosen keys."""

import os
import re
import threading
import time

from ostler.wire.prompts import NAME
from ostler.wire.texts import KEY

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_KEY = re.compile(KEY)
_NAME = re.compile(NAME)
NO_NAME = "must be up to 64 lower-case letters, digits and ._-, and begin with a letter or digit"


class _Ulids:
    """Makes ULIDs that sort in the order they were made, also within a millisecond or when the clock steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> str:
        with self._lock:
            value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
            if value <= self._last:  # several servers may follow one id, so steps of one would meet
                value = self._last + 1 + int.from_bytes(os.urandom(8))
            self._last = value
        return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -5, -5))

    def follow(self, ulid: str) -> None:
        value = 0
        for letter in ulid:
            value = value << 5 | _ALPHABET.index(letter)
        with self._lock:
            self._last = max(self._last, value)


_ulids = _Ulids()
ulid = _ulids.next


def follow(last_id: str) -> None:
    """Make only ids that sort behind this one, also if the clock was ahead when it was made."""
    _ulids.follow(last_id.partition("_")[2])


def new_id(prefix: str) -> str:
    """A new id such as ses_01J..."""
    return f"{prefix}_{ulid()}"


def is_name(value: str) -> bool:
    """Whether something stored may be called so."""
    return _NAME.fullmatch(value) is not None


def is_key(value: str) -> bool:
    """Whether a client may use this as the key of a session."""
    return _KEY.fullmatch(value) is not None
