"""What the place where files are kept is asked for, in numbers."""

from ostler.base.clock import ObjectNumbers
from ostler.server.objects.protocol import Entry, Objects


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
