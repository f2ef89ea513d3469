"""The files that tools may touch: those of the workspace, however a path or a link spells them."""

import errno
import os
import platform
import posixpath
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path

from ostler.agent.operations import Found, Missing, ToolFailed, Wrap, replacing
from ostler.agent.processes import Command, Hear, started
from ostler.base.beneath import make_folders, open_beneath
from ostler.base.ids import ulid

_OUTSIDE = frozenset({errno.EXDEV, errno.ELOOP})


def relative_to(path: str, names: Collection[str]) -> str | None:
    """A path as it is called from a folder that has these names; None if it leads out."""
    given = path or "."
    for name in names:
        if given == name or given.startswith(f"{name}/"):
            given = given[len(name) :].lstrip("/") or "."
            break
    found = posixpath.normpath(given)
    return None if "\0" in found or found.startswith("/") or found == ".." or found.startswith("../") else found


def outside(path: str, root: str) -> ToolFailed:
    """What a model hears of a path that leads out."""
    return ToolFailed(f"'{path}' is outside of the workspace {root}, or a link leads there.")


def too_large(path: str, size: int, most: int) -> ToolFailed:
    """What a model hears of a file that it cannot have."""
    reason = f"'{path}' has {size} bytes; more than {most} are too many."
    return ToolFailed(f"{reason} Use `grep` to find what you need.")


class Workspace:
    """One folder of this machine, held open: the operations of every session that does not say otherwise."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.machine = f"{platform.system()} ({platform.machine()})"
        self._names = tuple({root.rstrip("/"), self.root})
        self._folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def relative(self, path: str) -> str:
        """A path as it is called from the root; raises ToolFailed for one that leads out."""
        found = relative_to(path, self._names)
        if found is None:
            raise outside(path, self.root)
        return found

    @contextmanager
    def opened(self, path: str, flags: int = os.O_RDONLY, *, granted: Collection[str] = ()) -> Iterator[int]:
        """Open what is there; `granted` paths may be anywhere. Raises ToolFailed."""
        descriptor = self._open(path, flags, granted)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, path: str, flags: int, granted: Collection[str]) -> int:
        flags |= 0 if flags & os.O_PATH else os.O_NONBLOCK  # a pipe must not keep us waiting
        try:
            if path in granted:
                return os.open(path, flags | os.O_CLOEXEC)
            return open_beneath(self._folder, self.relative(path), flags, links=True)
        except OSError as error:
            raise self._failed(path, error) from error

    def _failed(self, path: str, error: OSError) -> ToolFailed:
        if error.errno in _OUTSIDE:
            return outside(path, self.root)
        if error.errno == errno.ENOENT:
            return Missing(f"'{path}' is not there.")
        return ToolFailed(f"'{path}': {error.strerror}.")

    def place(self, path: str) -> str:
        """Where a path really is, from the root; raises ToolFailed if it is not there."""
        with self.opened(path, os.O_PATH) as descriptor:
            return self._behind(descriptor)

    def _behind(self, descriptor: int) -> str:
        return self.relative(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    def read(self, path: str, most: int, *, granted: Collection[str] = ()) -> bytes:
        """The content of a file. Raises ToolFailed."""
        with self.opened(path, granted=granted) as descriptor:
            facts = os.fstat(descriptor)
            if stat.S_ISDIR(facts.st_mode):
                raise ToolFailed(f"'{path}' is a folder. Use `find` to see what is in it.")
            if not stat.S_ISREG(facts.st_mode):
                raise ToolFailed(f"'{path}' is no ordinary file.")
            if facts.st_size > most:
                raise too_large(path, facts.st_size, most)
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(most + 1)

    def write(self, path: str, content: bytes) -> bool:
        """Put a file there, whole or not at all; says whether there was one. Raises ToolFailed."""
        at, mode = self.relative(path), None
        with suppress(Missing), self.opened(path, os.O_PATH) as descriptor:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise ToolFailed(f"'{path}' is there already and is no ordinary file.")
            mode = stat.S_IMODE(facts.st_mode)
            at = self._behind(descriptor)
        try:
            self._replace(at, content, mode)
        except OSError as error:
            raise self._failed(path, error) from error
        return mode is not None

    def _replace(self, at: str, content: bytes, mode: int | None) -> None:
        above, name = posixpath.split(at)
        try:
            folder = open_beneath(self._folder, above, os.O_PATH | os.O_DIRECTORY, links=True)
        except FileNotFoundError:
            make_folders(self._folder, above)
            folder = open_beneath(self._folder, above, os.O_PATH | os.O_DIRECTORY)
        fresh = f".{ulid()}.new"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(fresh, flags, 0o666, dir_fd=folder), "wb") as file:
                file.write(content)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
            os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise
        finally:
            os.close(folder)

    def names(self, path: str) -> list[str]:
        """What is in a folder. Raises ToolFailed."""
        with self.opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            return os.listdir(descriptor)  # noqa: PTH208  only a descriptor is surely inside

    def files(self, path: str) -> Iterator[Found]:
        """All files below a folder but those of `.git`. Raises ToolFailed."""
        with self.opened(path, os.O_RDONLY | os.O_DIRECTORY) as top:
            for folder, folders, files, descriptor in os.fwalk(".", dir_fd=top):
                folders[:] = [name for name in folders if name != ".git"]
                for name in files:
                    yield Found(f"{folder}/{name}".removeprefix("./"), _changed_at(name, descriptor))

    def run(
        self,
        command: str,
        hear: Hear,
        *,
        environ: Mapping[str, str],
        seconds: float,
        wrap: Wrap = replacing,
        alone: bool = False,
    ) -> AbstractAsyncContextManager[Command]:
        """Run a command in the root; it is ended when the block is left."""
        return started(wrap(command), hear, cwd=self.root, environ=environ, alone=alone)


def _changed_at(name: str, folder: int) -> float:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
