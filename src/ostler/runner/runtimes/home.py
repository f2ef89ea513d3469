"""The private home and the scrubbed environment that programs of others start with."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ostler.base.private import make_folder

_INHERITED = frozenset({"PATH", "LANG", "TERM", "TZ"})
_FOLDERS = {
    "TMPDIR": "tmp",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The few variables of ours that a child may see."""
    return {name: value for name, value in environ.items() if name in _INHERITED or name.startswith("LC_")}


def home_variables(home: str) -> dict[str, str]:
    """What tells a program where its home and its folders are."""
    return {"HOME": home, **{name: str(Path(home) / folder) for name, folder in _FOLDERS.items()}}


def prepare_home(home: str, files: Mapping[str, str], links: Mapping[str, str | None] | None = None) -> None:
    """Make the folders and write the files; nothing is ever written outside the home, whatever links lie in it."""
    root = Path(home)
    make_folder(root)
    for folder in _FOLDERS.values():
        make_folder(root / folder)
    write_in_home(home, {name: content.encode() for name, content in files.items()})
    for name, target in (links or {}).items():
        _link(root, name, target)


def write_in_home(home: str, files: Mapping[str, bytes]) -> None:
    """Write files of an agent's home; what lies outside of it by a link is refused."""
    root = Path(home).resolve()
    for name, content in files.items():
        _write(root, name, content)


def _write(root: Path, name: str, content: bytes) -> None:
    folder = (root / name).parent
    if not folder.resolve().is_relative_to(root) or ".." in Path(name).parts:
        raise PermissionError(13, "lies outside the agent's home", name)
    make_folder(folder)
    fresh = folder / f".{Path(name).name}.new"
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    fresh.replace(folder / Path(name).name)


def _make_room(folder: Path) -> None:
    """Put a folder aside that an agent has made before it shared one."""
    aside = folder.with_name(f".{folder.name}.own")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)


def _link(root: Path, name: str, target: str | None) -> None:
    """Let a file stand for one elsewhere; a newer one that an agent has put in the place of the link stays."""
    path = root / name
    if target is None:
        if path.is_symlink():
            path.unlink()
        return
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise PermissionError(13, "lies outside the agent's home", name)
    make_folder(path.parent)
    if path.is_dir() and not path.is_symlink():
        _make_room(path)
    elif path.is_file() and not path.is_symlink() and path.stat().st_mtime > Path(target).stat().st_mtime:
        return
    fresh = path.with_name(f".{path.name}.link")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(path)
