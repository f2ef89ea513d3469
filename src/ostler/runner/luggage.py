"""What travels with a session that is to go on elsewhere: implements link.luggage over workspaces and memories."""

import asyncio
import os
import tarfile
import tempfile
from collections.abc import AsyncIterable, Awaitable, Callable
from pathlib import Path
from typing import IO, BinaryIO, Self

from ostler.base.errors import StoreUnavailable
from ostler.base.undo import undone_by
from ostler.link.luggage import Download
from ostler.runner.file_trees.unrecorded import put_unrecorded, write_unrecorded
from ostler.runner.runtimes.memories import Memories
from ostler.runner.runtimes.memory_archives import About, BadArchive, read_archive, write_archive
from ostler.runner.session_folders import SessionFolders
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.repositories.packs import Damaged, lay_out, take_pack, write_pack

_PIECE_BYTES = 2**17
_IN_MEMORY_BYTES = 2**20


class LocalLuggage:
    """Implements link.luggage.Luggage."""

    def __init__(self, library: WorkspaceLibrary, memories: Memories, sessions: SessionFolders) -> None:
        self._library = library
        self._memories = memories
        self._sessions = sessions

    async def pack(self, workspace: str, snapshot: str, *, known: tuple[str, ...]) -> Download:
        """Written to disk first, so that the workspace is not held up by who reads it."""

        def write(target: BinaryIO) -> None:
            storage, states = self._library.storage, self._library.states
            base = storage.bases.get(storage.record(workspace).base)
            origin = (base.tree,) if base.url is not None else ()  # everybody can have what an address names
            tree = states.state(workspace, snapshot).tree
            write_pack(storage.git, states.repository(workspace), tree, (*known, *origin), target)

        return await _written(lambda file: self._library.threads.alone(workspace, lambda: write(file)))

    async def memory(self, session: str, workspace: str | None, snapshot: str | None) -> Download:
        """The copy that was kept with the snapshot, or the home itself."""
        home = self._sessions.home(session)
        copy = self._memories.copy_of(workspace, snapshot) if workspace is not None and snapshot is not None else None
        about = About(home=home, workspace=workspace)
        return await _written(lambda file: asyncio.to_thread(write_archive, copy or Path(home), about, file))

    async def unrecorded(self, workspace: str, snapshot: str) -> Download:
        """Written to disk first, as a pack is."""

        def write(target: BinaryIO) -> None:
            storage, states = self._library.storage, self._library.states
            repository, tree = states.repository(workspace), states.state(workspace, snapshot).tree
            recorded = storage.recorder.contents(repository, tree).files
            root = storage.open_tree(workspace)
            try:
                write_unrecorded(root, recorded, target)
            finally:
                os.close(root)

        return await _written(lambda file: self._library.threads.alone(workspace, lambda: write(file)))

    async def put_unrecorded(self, workspace: str, archive: AsyncIterable[bytes]) -> None:
        """Received whole before a file is touched."""
        storage = self._library.storage
        with tempfile.NamedTemporaryFile(dir=storage.root / "incoming") as file:
            await _received(archive, file.file)
            await self._library.threads.alone(workspace, lambda: self._put_unrecorded(workspace, file.file))

    def _put_unrecorded(self, workspace: str, source: IO[bytes]) -> None:
        root = self._library.storage.open_tree(workspace)
        try:
            put_unrecorded(source, root)
        except (OSError, tarfile.TarError) as error:
            raise StoreUnavailable(reason=f"the files that git ignores cannot be laid out ({error})") from error
        finally:
            os.close(root)

    async def take_in(self, workspace: str, pack: AsyncIterable[bytes]) -> None:
        """Received whole before git sees it."""
        storage, states = self._library.storage, self._library.states
        with tempfile.NamedTemporaryFile(dir=storage.root / "incoming") as file:
            await _received(pack, file.file)
            await self._library.threads.alone(
                workspace, lambda: take_pack(storage.git, states.repository(workspace), Path(file.name))
            )

    async def lay_out(self, workspace: str, tree: str) -> None:
        """From what the files are now."""
        try:
            await self._library.threads.alone(workspace, lambda: self._lay_out(workspace, tree))
        except Damaged as error:
            raise StoreUnavailable(reason=f"the files of the last snapshot cannot be put together ({error})") from error

    def _lay_out(self, workspace: str, tree: str) -> None:
        storage, states = self._library.storage, self._library.states
        repository, now = states.repository(workspace), states.state(workspace, "now").tree
        root = storage.open_tree(workspace)
        try:
            lay_out(storage.git, repository, now, tree, root)
        finally:
            os.close(root)

    async def remember(self, session: str, workspace: str | None, archive: AsyncIterable[bytes]) -> None:
        """Received whole before the home is touched."""
        file: BinaryIO = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # type: ignore[assignment]  # noqa: SIM115  below
        with file:
            await _received(archive, file)
            home = Path(self._sessions.home(session))
            try:
                await asyncio.to_thread(read_archive, file, home, workspace)
            except BadArchive as error:
                raise StoreUnavailable(reason=f"the agent's memory cannot be read ({error})") from error


async def _written(write: Callable[[BinaryIO], Awaitable[object]]) -> Download:
    """What a function writes, to be read when it is all there."""
    file: BinaryIO = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # type: ignore[assignment]  # noqa: SIM115  closed when sent
    with undone_by(file.close):
        await write(file)
        size = file.tell()
    return Download(size=size, pieces=_Sent(file))


async def _received(pieces: AsyncIterable[bytes], file: IO[bytes]) -> None:
    async for piece in pieces:
        await asyncio.to_thread(file.write, piece)
    file.flush()
    file.seek(0)


class _Sent:
    """Gives a file piece by piece, and closes it also if nobody asks for the first."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._file.closed or not (piece := await asyncio.to_thread(self._file.read, _PIECE_BYTES)):
            await self.aclose()
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        self._file.close()
