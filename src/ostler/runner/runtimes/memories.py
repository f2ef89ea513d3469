"""The agents' own memories, kept with snapshots: copies of what matters in their homes."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ostler.base.private import make_folder, write_file
from ostler.runner.runtimes.home_copy import rename_inside

_LEFT_OUT = frozenset({".cache", "tmp", ".run", ".npm"})
"""Folders of a home that no conversation is remembered by, and that can be large."""
_PROGRAMS = "node_modules"
_OWNER = 0o700
MOST_BYTES = 64 * 2**20
MOST_FILES = 20_000


class Memories:
    """A folder for each workspace, and in it one for each snapshot. All methods block."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keep(self, workspace: str, snapshot: str, home: str) -> bool:
        """Copy a home; False if there is none, or it is too large to be copied after every turn."""
        files = files_to_copy(Path(home))
        if files is None or not files:
            return False
        place = self._place(workspace, snapshot)
        fresh = place.with_name(f".{place.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        earlier = max((folder for folder in place.parent.glob("snp_*") if folder.is_dir()), default=None)
        try:
            for file in files:
                _copy(Path(home) / file, fresh / file, earlier / file if earlier is not None else None)
        except OSError:  # it changed while it was looked at
            shutil.rmtree(fresh, ignore_errors=True)
            return False
        write_file(self._origin(place), home.encode(errors="surrogateescape"))
        fresh.rename(place)
        return True

    def bring_back(self, workspace: str, snapshot: str, home: str, *, into: str) -> None:
        """Make a home what it was; one of another workspace names its own places afterwards."""
        target = Path(home)
        fresh = target.with_name(f".{target.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        make_folder(target.parent)
        shutil.copytree(self._place(workspace, snapshot), fresh, symlinks=True)
        fresh.chmod(0o700)
        origin = self._origin_of(self._place(workspace, snapshot)) or home
        if (origin, workspace) != (home, into):
            rename_inside(fresh, [(origin, home), (letters(workspace), letters(into))])
        put_in_place(fresh, target)

    def copy_of(self, workspace: str, snapshot: str) -> Path | None:
        """The memory that was kept with a snapshot, if there is one."""
        place = self._place(workspace, snapshot)
        return place if place.is_dir() else None

    def forget(self, workspace: str) -> None:
        """The workspace is gone."""
        shutil.rmtree(self._root / workspace, ignore_errors=True)

    def keep_only(self, workspaces: set[str]) -> None:
        """Remove what belongs to no workspace."""
        for place in self._root.glob("*"):
            if place.name not in workspaces:
                shutil.rmtree(place, ignore_errors=True)

    def _origin(self, place: Path) -> Path:
        """Where it is written whose home a copy was."""
        return place.with_suffix(".home")

    def _origin_of(self, place: Path) -> str | None:
        """Whose home a copy was; None if that cannot be read any more."""
        try:
            found = self._origin(place).read_bytes().decode(errors="surrogateescape")
        except FileNotFoundError:
            return None
        return found if found.startswith("/") else None

    def _place(self, workspace: str, snapshot: str) -> Path:
        return self._root / workspace / snapshot


def put_in_place(fresh: Path, home: Path) -> None:
    """Replace a home, whole or not at all."""
    old = home.with_name(f".{home.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(FileNotFoundError):
        home.rename(old)
    fresh.rename(home)
    shutil.rmtree(old, ignore_errors=True)


def letters(workspace: str) -> str:
    """The part of an id that is in a path however an agent spells that."""
    return workspace.rpartition("_")[2]


def files_to_copy(home: Path) -> list[Path] | None:
    """The files of a home, relative to it; None when they are too many or too large."""
    files: list[Path] = []
    size = 0
    for file, status in _files(home):
        size += status.st_size
        files.append(file.relative_to(home))
        if size > MOST_BYTES or len(files) > MOST_FILES:
            return None
    return files


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for at, folders, names in os.walk(folder):
        left_out = _LEFT_OUT if Path(at) == folder else ()
        wanted = [name for name in folders if name != _PROGRAMS and name not in left_out]
        folders[:] = [name for name in wanted if not (Path(at) / name).is_symlink()]
        for name in names:
            file = Path(at) / name
            with suppress(OSError):
                status = file.lstat()
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    yield file, status


def _copy(source: Path, target: Path, earlier: Path | None) -> None:
    """Copy a file; one that has not changed since the earlier copy shares its bytes, since copies never change."""
    make_folder(target.parent)
    if earlier is not None and _is_the_same(source, earlier):
        os.link(earlier, target, follow_symlinks=False)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
        if not target.is_symlink():
            target.chmod(target.stat().st_mode & _OWNER)


def _is_the_same(source: Path, earlier: Path) -> bool:
    try:
        one, other = source.lstat(), earlier.lstat()
    except OSError:
        return False
    return (one.st_size, one.st_mtime_ns, one.st_mode & _OWNER) == (
        other.st_size,
        other.st_mtime_ns,
        other.st_mode & _OWNER,
    )
