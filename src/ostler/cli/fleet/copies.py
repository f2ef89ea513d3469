"""A follower's copy of the files: which folder may be one, and how an archive of a fence becomes it."""

import json
import os
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import IO

import click

MARK = ".ostler-follower"
"""In a folder that fences may write to; it has what the last one by the relay brought."""
_NEW = ".ostler-follower.new"


def claim(folder: Path, *, overwrite: bool) -> bool:
    """Whether fences may write to a folder: it is empty, was one before, or somebody says so."""
    mark = folder / MARK
    if mark.is_file():
        return True
    if not overwrite and any(folder.iterdir()):
        return False
    mark.write_text("[]")
    return True


def receive(folder: Path, archive: IO[bytes]) -> None:
    """Make a copy equal to an archive: what an earlier one brought and this one has not goes away."""
    mark, new = folder / MARK, folder / _NEW
    if not mark.is_file():
        raise click.ClickException(f"{folder} is no copy: there is no {MARK} in it.")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    try:
        try:
            with tarfile.open(fileobj=archive, mode="r|gz") as tar:
                tar.extractall(new, filter="tar")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise click.ClickException(f"The archive could not be unpacked: {error}") from error
        before = set(json.loads(mark.read_text() or "[]"))
        names = _names(new)
        mark.write_text(json.dumps(sorted(before | set(names))))  # also when it is ended in the middle of what follows
        _move(new, folder, names)
        _remove(folder, before - set(names))
        mark.write_text(json.dumps(sorted(names)))
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _names(tree: Path) -> list[str]:
    """Everything in it, folders before what they hold."""
    found = []
    for root, folders, files in os.walk(tree):
        found += [str(Path(root, each).relative_to(tree)) for each in (*folders, *files)]
    return found


def _move(new: Path, folder: Path, names: list[str]) -> None:
    for name in names:
        source, target = new / name, folder / name
        if source.is_dir() and not source.is_symlink():
            if target.is_symlink() or target.is_file():
                target.unlink()
            target.mkdir(exist_ok=True)
            continue
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        source.replace(target)
    for name in reversed(names):  # a folder that nobody may write to gets its files first
        if (new / name).is_dir() and not (new / name).is_symlink():
            shutil.copymode(new / name, folder / name)


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names, reverse=True):  # what a folder holds before the folder
        path = folder / name
        if any((folder / above).is_symlink() for above in list(Path(name).parents)[:-1]):
            continue  # it went with the folder in whose place a link is now, and what that leads to is not ours
        with suppress(OSError):  # gone already, or a folder that holds other files
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
