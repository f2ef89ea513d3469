"""What a server asks of the place where it keeps files; every place does the same (`tests/objects`).

All calls wait for a disk or a network, so they are made in a thread.
"""

from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """One object."""

    key: str
    age: float
    """Seconds since it was written."""


class Objects(Protocol):
    """Objects by key, such as `attachments/ses_1/att_1/0.png`; it raises StoreUnavailable when it cannot be used."""

    def put(self, key: str, content: bytes) -> None:
        """Write an object, whole or not at all."""
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless there is one, whole or not at all; says whether it was written."""
        ...

    def get(self, key: str) -> bytes | None:
        """What an object holds; None if there is none."""
        ...

    def entries(self, folder: str) -> list[Entry]:
        """Everything below a folder."""
        ...

    def folders(self, folder: str) -> set[str]:
        """The names of the folders in a folder."""
        ...

    def remove(self, key: str) -> None:
        """Remove an object, or all below a folder; one that is not there may be removed too."""
        ...
