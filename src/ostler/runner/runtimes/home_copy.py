"""Makes a copied home a home of its own: what names the old place in it names the new one.

Agents write absolute paths into their memories. A copy that still named the place it came from would be read there, and
written there. Old and new names have the same length, so that files with fixed places inside stay whole.
"""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

_SQLITE = b"SQLite format 3\0"
Names = Sequence[tuple[str, str]]


def rename_inside(folder: Path, names: Names) -> None:
    """Replace names in the content of files, in links and in the names of files and folders."""
    pairs = [(old.encode(), new.encode()) for old, new in _all_cases(names) if old != new and len(old) == len(new)]
    for path in [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]:
        _fold_in_the_journal(path)
    for at, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(at) / name
            if path.is_symlink():
                _relink(path, pairs)
            else:
                _rewrite(path, pairs)
        for name in (*files, *folders):
            renamed = os.fsdecode(_replaced(os.fsencode(name), pairs))
            if renamed != name:
                (Path(at) / name).rename(Path(at) / renamed)


def _all_cases(names: Names) -> list[tuple[str, str]]:
    return [pair for old, new in names for pair in dict.fromkeys([(old, new), (old.lower(), new.lower())])]


def _replaced(text: bytes, pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _relink(path: Path, pairs: Sequence[tuple[bytes, bytes]]) -> None:
    target = os.fsencode(path.readlink())
    renamed = _replaced(target, pairs)
    if renamed != target:
        path.unlink()
        path.symlink_to(os.fsdecode(renamed))


def _rewrite(path: Path, pairs: Sequence[tuple[bytes, bytes]]) -> None:
    content = path.read_bytes()
    renamed = _replaced(content, pairs)
    if renamed != content:
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_bytes(renamed)
        shutil.copystat(path, fresh)
        fresh.replace(path)


def _fold_in_the_journal(path: Path) -> None:
    """What a database keeps beside itself is guarded by checksums, so it is taken in before anything is replaced."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return
        with closing(sqlite3.connect(path, timeout=5)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (OSError, sqlite3.Error):
        return  # it went with another one's journal, or is no database after all
