"""Identifiers: ULIDs with a prefix that says what they name, and the rule for client-chosen keys."""

import os
import re
import threading
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_lock = threading.Lock()
_last = 0


def ulid() -> str:
    """A new ULID; two made by one process always sort in the order they were made."""
    global _last
    with _lock:
        value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
        _last = max(value, _last + 1)
        value = _last
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -5, -5))


def new_id(prefix: str) -> str:
    """A new id such as ses_01J..."""
    return f"{prefix}_{ulid()}"


def is_key(value: str) -> bool:
    """Whether a client may use this as the key of a session."""
    return value not in {".", ".."} and _KEY.fullmatch(value) is not None
