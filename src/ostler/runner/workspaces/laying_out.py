"""An archive laid out over files that are there: unpacked beside them first, then moved to where it says."""

import os
import secrets
import shutil
import stat
from pathlib import Path

from ostler.base.beneath import make_folders, opened
from ostler.base.errors import FileMissing, PathRefused
from ostler.runner.file_trees.unpacking import UnpackLimits, unpack
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.files import Files, checked_path
from ostler.wire.workspaces import FilePaths

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


def laid_out(files: Files, path: str, archive: Path, limits: UnpackLimits, limit: int) -> FilePaths:
    """Lay an archive out in a folder, which is made; nothing is changed by an archive that is refused."""
    path = checked_path(path)
    files.make_folder(path)
    fresh = f".{secrets.token_hex(8)}.new"
    try:
        with opened(files.root, path, _FOLDER, links=files.links) as at:
            os.mkdir(fresh, 0o700, dir_fd=at)
            try:
                with opened(at, fresh, _FOLDER) as unpacked:
                    unpack(archive, Path(f"/proc/{os.getpid()}/fd/{unpacked}"), limits)
                    found = _moved(unpacked, at)
            finally:
                shutil.rmtree(fresh, dir_fd=at, ignore_errors=True)
    except FileNotFoundError as error:
        raise FileMissing(what="folder", path=printable(path)) from error
    except OSError as error:
        reason = f"cannot take all of the archive ({error.strerror}: {error.filename or 'a file'})"
        raise PathRefused(path=printable(path), reason=reason) from error
    return FilePaths(paths=tuple(sorted(found)[:limit]), truncated=len(found) > limit)


def _moved(source: int, target: int) -> list[str]:
    """Move every file and link to the same name below the target; gives their paths."""
    found = []
    for above, folders, names, at in os.fwalk(".", dir_fd=source):
        inside = os.path.normpath(above)
        make_folders(target, inside)
        with opened(target, inside, _FOLDER) as into:
            for name in (*names, *(each for each in folders if _is_link(each, at))):
                os.rename(name, name, src_dir_fd=at, dst_dir_fd=into)
                found.append(printable(os.path.normpath(f"{inside}/{name}")))
    return found


def _is_link(name: str, at: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
