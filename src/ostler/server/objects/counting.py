"""What the place where files are kept is asked for, in numbers."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.base.clock import Histogram
from ostler.server.objects.protocol import Entry, Objects

_CLASSES = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 30.0)


class ObjectNumbers:
    """Of one server, since its start; calls come from many threads."""

    def __init__(self) -> None:
        self.times: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(_CLASSES))
        """How long calls took, by verb; also those that failed."""
        self.failed: Counter[str] = Counter()
        """Calls that failed, by verb."""
        self.read_bytes = 0
        self.written_bytes = 0
        self._lock = threading.Lock()

    @contextmanager
    def timed(self, verb: str) -> Iterator[None]:
        """Count a call as long as the block runs."""
        began, failed = time.monotonic(), 1
        try:
            yield
            failed = 0
        finally:
            with self._lock:
                self.times[verb].observe(time.monotonic() - began)
                self.failed[verb] += failed

    def moved(self, *, read: int = 0, written: int = 0) -> None:
        """So many bytes went to it, or came from it."""
        with self._lock:
            self.read_bytes += read
            self.written_bytes += written


class CountedObjects:
    """Implements Objects with another one."""

    def __init__(self, objects: Objects, numbers: ObjectNumbers) -> None:
        self._objects = objects
        self._numbers = numbers

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        with self._numbers.timed("put"):
            self._objects.put(key, content)
        self._numbers.moved(written=len(content))

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless there is one."""
        with self._numbers.timed("create"):
            is_new = self._objects.create(key, content)
        self._numbers.moved(written=len(content) if is_new else 0)
        return is_new

    def get(self, key: str) -> bytes | None:
        """What an object holds."""
        with self._numbers.timed("get"):
            found = self._objects.get(key)
        self._numbers.moved(read=len(found or b""))
        return found

    def entries(self, folder: str) -> list[Entry]:
        """Everything below a folder."""
        with self._numbers.timed("list"):
            return self._objects.entries(folder)

    def folders(self, folder: str) -> set[str]:
        """The names of the folders in a folder."""
        with self._numbers.timed("list"):
            return self._objects.folders(folder)

    def remove(self, key: str) -> None:
        """Remove an object, or all below a folder."""
        with self._numbers.timed("remove"):
            self._objects.remove(key)
