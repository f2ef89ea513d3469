"""What sessions have on the disk of a runner: each a home, and a folder to work in if it names none."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ostler.base.errors import StoreUnavailable
from ostler.base.private import make_folder
from ostler.wire.running import AgentSpec


class SessionFolders:
    """A folder for each session. One that is forgotten is moved away at once and removed in the background."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "sessions"
        self._trash = state_dir / "trash"
        self._reaper = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ostler-reaper")

    def home(self, session: str) -> str:
        """Where its agents have their HOME."""
        return str(self._folder / session / "home")

    def work(self, session: str) -> str:
        """Where its agents work if it names no other folder."""
        return str(self._folder / session / "workspace")

    def make_work(self, session: str) -> None:
        """Make that folder."""
        try:
            make_folder(Path(self.work(session)))
        except OSError as error:
            raise StoreUnavailable(reason=f"the folder of the session: {error.strerror}") from error

    def placed(self, spec: AgentSpec) -> AgentSpec:
        """The spec with the folders that it leaves to the runner."""
        session = spec.session_id
        return replace(spec, cwd=spec.cwd or self.work(session), home=spec.home or self.home(session))

    def forget(self, session: str) -> None:
        """Remove all of a session; renaming takes no time, however much is in it."""
        self._trash.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            self._remove((self._folder / session).rename(self._trash / session))

    def forget_home(self, session: str) -> None:
        """Remove what only its own agents had; others work in its folder."""
        self._trash.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            self._remove(Path(self.home(session)).rename(self._trash / f"{session}-home"))

    def keep_only(self, sessions: set[str]) -> None:
        """Remove what was forgotten, and the folders of sessions that never came to be."""
        for path in self._trash.glob("*"):
            self._remove(path)
        for path in self._folder.glob("ses_*"):
            if path.name not in sessions:
                self.forget(path.name)

    def close(self) -> None:
        """Leave the rest to the next start."""
        self._reaper.shutdown(wait=False, cancel_futures=True)

    def _remove(self, path: Path) -> None:
        self._reaper.submit(shutil.rmtree, path, ignore_errors=True)
