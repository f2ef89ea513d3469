"""What sessions of an agent log in with, on disk and closed to others."""

import shutil
from pathlib import Path
from typing import Literal

import msgspec

from ostler.base.private import make_folder, replace_file
from ostler.wire.agents import LoginMethod

Verdict = Literal["accepted", "refused"]
_FILE = "login.json"


class StoredLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen for an agent, and what has been seen of it since."""

    method: LoginMethod
    variable: str | None = None
    key: str | None = None
    verdict: Verdict | None = None
    """What whoever was asked last said; None if nobody was asked."""
    by: str = ""
    """Who that was."""
    at: str = ""

    def __repr__(self) -> str:
        return f"StoredLogin(method={self.method!r}, variable={self.variable!r})"


class StoredLogins:
    """A folder for each agent: `login.json`, the home that its own login was made in, and that of one under way."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, agent: str) -> StoredLogin | None:
        """What was chosen; None if nothing was, or it cannot be read."""
        try:
            return msgspec.json.decode((self._folder / agent / _FILE).read_bytes(), type=StoredLogin)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, agent: str, login: StoredLogin) -> None:
        """Choose something."""
        make_folder(self._folder / agent)
        replace_file(self._folder / agent / _FILE, msgspec.json.encode(login))

    def remove(self, agent: str) -> None:
        """Forget all of it."""
        shutil.rmtree(self._folder / agent, ignore_errors=True)

    def home(self, agent: str) -> Path:
        """Where the files of the agent's own login are."""
        return self._folder / agent / "home"

    def new_home_of(self, agent: str) -> Path:
        """The home of a login that is under way."""
        return self._folder / agent / "new"

    def new_home(self, agent: str) -> Path:
        """An empty home for a login that begins."""
        path = self.new_home_of(agent)
        shutil.rmtree(path, ignore_errors=True)
        make_folder(path)
        return path

    def take_over(self, agent: str, files: tuple[str, ...]) -> None:
        """Put the files and folders of a login that has succeeded in their place."""
        new, home = self.new_home_of(agent), self.home(agent)
        for name in files:
            inside = [name] if (new / name).is_file() else [f"{name}/{each}" for each in files_in(new / name)]
            make_folder((home / name) if (new / name).is_dir() else (home / name).parent)
            for file in inside:
                make_folder((home / file).parent)
                replace_file(home / file, (new / file).read_bytes())

    def clear_all(self) -> None:
        """Remove what logins left that ended with a process that was killed."""
        for folder in self._folder.glob("*/new"):
            self.clear(folder.parent.name)

    def clear(self, agent: str) -> None:
        """Remove what a login that is over has left; nothing of an agent that was never logged in stays."""
        shutil.rmtree(self._folder / agent / "new", ignore_errors=True)
        folder = self._folder / agent
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def files_in(folder: Path) -> set[str]:
    """The files below a folder, but for what is only of the moment."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith(("tmp/", ".cache/", ".run/"))}
