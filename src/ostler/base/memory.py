"""What the C library does with memory that is free again."""

import contextlib
import ctypes

_MMAP_THRESHOLD = -3
_LARGE_BYTES = 2**17


def give_large_blocks_back() -> None:
    """Let the system have the memory of a large event as soon as it is free.

    Left alone, glibc keeps such blocks among the small ones after the first few, and the process never shrinks.
    """
    with contextlib.suppress(AttributeError, OSError):  # other C libraries have no such knob
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
