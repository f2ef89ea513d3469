"""What the mock agent remembers of a conversation, in one small file below HOME."""

import json
import os

FOLDER = ".mock-agent"


class Memory:
    """The user's prompts of one conversation, oldest first, and the limit that it has run into."""

    def __init__(self, session: str, turns: list[str], folder: str | None, limit: float | None = None) -> None:
        self.session = session
        self.turns = turns
        self.limit = limit
        """When it ends, in seconds since 1970."""
        self._folder = folder

    @classmethod
    def open(cls, home: str | None, resume: str | None) -> "Memory":
        """A new conversation, or an old one by its id; raises ValueError if there is no such one."""
        folder = os.path.join(home, FOLDER) if home else None  # noqa: PTH118 - pathlib costs start-up time
        if resume:
            turns, limit = _load(folder, resume)
            return cls(resume, turns, folder, limit)
        memory = cls(f"mock-{os.urandom(8).hex()}", [], folder)
        memory._save()
        return memory

    def remember(self, text: str) -> None:
        """Add a prompt; it is on disk when this returns."""
        self.turns.append(text)
        self._save()

    def set_limit(self, ends: float | None) -> None:
        """Run into a limit, or be free of it; that is on disk when this returns."""
        self.limit = ends
        self._save()

    def _save(self) -> None:
        if self._folder is None:
            return
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 - pathlib costs start-up time
        path = f"{self._folder}/{self.session}.json"
        with open(f"{path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
            json.dump({"turns": self.turns, "limit": self.limit}, file)
        os.replace(f"{path}.new", path)  # noqa: PTH105 - pathlib costs start-up time


def _load(folder: str | None, session: str) -> tuple[list[str], float | None]:
    if folder is None or not session.replace("-", "").isalnum():
        raise ValueError(f"there is no conversation '{session}'")
    try:
        with open(f"{folder}/{session}.json", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
            found = json.load(file)
            return [str(turn) for turn in found["turns"]], found.get("limit")
    except OSError:
        raise ValueError(f"there is no conversation '{session}'") from None
