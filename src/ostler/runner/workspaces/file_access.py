"""Files of workspaces and what differs between their states, as the server asks for them."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from ostler.base.errors import FileMissing, PathRefused
from ostler.base.undo import undone_by
from ostler.link.luggage import Download
from ostler.link.workspaces import EXACTLY
from ostler.runner.file_trees.packing import pack
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.laying_out import laid_out
from ostler.runner.workspaces.orders import DiffLimits
from ostler.runner.workspaces.searching import list_paths, search
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.threads import WorkspaceThreads
from ostler.wire.provisioning import FileContent, FileQuery
from ostler.wire.workspaces import ArchiveForm, Difference, FileEntry, FileListing, FileMatches, FilePaths

_Result = TypeVar("_Result")
_PIECE_BYTES = 2**18
_EXACT = f"{EXACTLY}/"
_IN_MEMORY_BYTES = 4 * 2**20


class WorkspaceFiles:
    """Implements link.workspaces.Files."""

    def __init__(self, threads: WorkspaceThreads, states: States) -> None:
        self._threads = threads
        self._states = states
        self._storage = states.storage

    async def list(self, place: str, path: str, limit: int) -> FileListing:
        """What is in a folder."""
        return await self.use(place, lambda files: files.list(path, limit=limit))

    async def stat(self, place: str, path: str) -> FileEntry:
        """What a name is."""
        return await self.use(place, lambda files: files.stat(path))

    async def read(self, place: str, path: str, *, offset: int = 0, length: int | None = None) -> FileContent:
        """A piece of a file."""
        return await self.use(place, lambda files: files.read(path, offset=offset, length=length))

    async def write(self, workspace: str, path: str, data: bytes, *, executable: bool | None = None) -> FileEntry:
        """Write a file."""
        return await self.use(workspace, lambda files: files.write(path, data, executable=executable))

    async def remove(self, place: str, path: str, *, recursive: bool = False) -> None:
        """Remove a file or a folder."""
        await self.use(place, lambda files: files.remove(path, recursive=recursive))

    async def make_folder(self, place: str, path: str) -> FileEntry:
        """Make a folder."""
        return await self.use(place, lambda files: files.make_folder(path))

    async def move(self, place: str, path: str, to: str, *, overwrite: bool = False) -> FileEntry:
        """Give a file or folder another name."""
        return await self.use(place, lambda files: files.move(path, to, overwrite=overwrite))

    async def unpack(self, place: str, path: str, upload: str, limit: int) -> FilePaths:
        """Lay an uploaded archive out."""
        _, archive = self._storage.uploads.find(upload)
        limits = self._storage.options.unpacking
        return await self.use(place, lambda files: laid_out(files, path, archive, limits, limit))

    async def search(self, place: str, query: FileQuery) -> FileMatches:
        """Look for a text."""
        return await self.use(place, lambda files: search(files, query))

    async def paths(self, place: str, limit: int) -> FilePaths:
        """The files below a folder."""
        return await self.use(place, lambda files: list_paths(files, limit))

    async def use(self, place: str, work: Callable[[Files], _Result]) -> _Result:
        """Work with files as the agent sees them, in a thread; a folder of the machine is used as it is."""
        if place.startswith("/"):
            return await self._threads.run(lambda _: _used(_opened(place), work, links=not place.startswith(_EXACT)))
        root = await self._opened(place)
        return await self._threads.run(lambda _: _used(root, work))

    async def _opened(self, workspace: str) -> int:
        """A descriptor of the tree; who stops waiting for it leaves none open."""
        return await self._threads.alone(workspace, lambda: self._storage.open_tree(workspace), unwanted=os.close)

    async def archive(self, workspace: str, form: ArchiveForm, *, with_git: bool = False) -> Download:
        """The whole tree as an archive; fails before the first piece if it cannot be read at all."""
        self._storage.check_there(workspace)
        return Download(pieces=self._packed(workspace, form, with_git=with_git))

    async def _packed(self, workspace: str, form: ArchiveForm, *, with_git: bool) -> AsyncIterator[bytes]:
        root = await self._opened(workspace)
        try:
            pieces = pack(root, form, with_git=with_git)
            while (piece := await self._threads.run(lambda _: next(pieces, None))) is not None:
                if piece:
                    yield piece
        finally:
            os.close(root)

    async def diff(
        self,
        workspace: str,
        *,
        old: str = "base",
        new: str = "now",
        context: int = 3,
        text: bool = True,
        limits: DiffLimits | None = None,
    ) -> Difference:
        """What differs between two states; ignored files are left out."""
        chosen = limits or DiffLimits(context=context)
        return await self._threads.alone(workspace, lambda: self._states.diff(workspace, old, new, chosen, text=text))

    async def patch(self, workspace: str, *, old: str = "base", new: str = "now") -> Download:
        """The difference as a patch; it waits on disk if it is large."""
        file: BinaryIO = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # type: ignore[assignment]  # noqa: SIM115  closed when sent
        with undone_by(file.close):
            size = await self.write_patch(workspace, file, old=old, new=new)
        return Download(size=size, pieces=_sent(file))

    async def write_patch(self, workspace: str, target: BinaryIO, *, old: str = "base", new: str = "now") -> int:
        """Write the patch into a file; gives its size, 0 if there is no difference."""
        return await self._threads.alone(workspace, lambda: self._states.patch(workspace, old, new, target))


def _used(root: int, work: Callable[[Files], _Result], *, links: bool = True) -> _Result:
    with Files(root, links=links) as files:
        return work(files)


def _opened(folder: str) -> int:
    place = folder.removeprefix(EXACTLY) if folder.startswith(_EXACT) else folder
    try:
        found = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileMissing(what="folder", path=place) from error
    if place is not folder and str(Path(f"/proc/self/fd/{found}").readlink()) != place:
        os.close(found)
        raise PathRefused(path=place, reason="was replaced by a link while it was looked at")
    return found


async def _sent(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
