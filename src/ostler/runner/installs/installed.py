"""Where installed programs stand: a folder per version, a manifest that says which count, and a lock.

A folder that the manifest does not name is nothing, however complete it looks; so a killed installation leaves only
litter, which the next one sweeps up.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ostler.agents.adapter import Installation

_STAGING = ".new-"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One installed version."""

    version: str
    source: str
    """Where it came from, such as npm."""
    wanted: str
    """The version that was asked of the source."""
    path: str
    """The program, from the version's folder."""
    interpreter: tuple[str, ...] = ()
    """What runs the program, such as a Node."""
    chosen: bool = False
    """Whether somebody asked for just this version, or for it anew; it then beats a program on the PATH."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as installed; the file manifest.json."""

    current: str | None = None
    installed: dict[str, Record] = msgspec.field(default_factory=dict)


class InstalledVersions:
    """All versions of one program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def records(self) -> list[Record]:
        """What is installed, the current version first."""
        manifest = self._manifest()
        found = [record for record in manifest.installed.values() if self._is_there(record)]
        return sorted(found, key=lambda record: record.version != manifest.current)

    def installation(self, record: Record) -> Installation:
        """How to run a version."""
        path = str(self._folder / record.version / record.path)
        return Installation(path=path, command=(*record.interpreter, path), version=record.version)

    def _is_there(self, record: Record) -> bool:
        return all(Path(part).is_file() for part in self.installation(record).command)

    def _manifest(self) -> Manifest:
        try:
            return msgspec.json.decode((self._folder / "manifest.json").read_bytes(), type=Manifest)
        except (OSError, ValueError):
            return Manifest()

    @contextmanager
    def locked(self, wait: Callable[[], None]) -> Iterator[int]:
        """Keep everyone else out, other processes too; calls `wait` again and again while somebody else is in."""
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as held:
            while not _lock(held.fileno()):
                wait()
            yield held.fileno()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder to build in, gone afterwards; needs the lock, so what others left there is litter."""
        for litter in self._folder.glob(f"{_STAGING}*"):
            shutil.rmtree(litter, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, content: Path, record: Record) -> None:
        """Make what was built in a staging folder the current version, in one step."""
        target = self._folder / record.version
        if target.exists():
            target.rename(content.with_name("replaced"))
        content.rename(target)
        self.choose(record)

    def choose(self, record: Record) -> None:
        """Make a version that is there the current one."""
        manifest = Manifest(current=record.version, installed={**self._manifest().installed, record.version: record})
        fresh = self._folder / ".manifest.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        fresh.replace(self._folder / "manifest.json")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
