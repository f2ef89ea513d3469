"""Workspaces at the other end of a link. Bytes and lines of progress travel too: each piece is a call of its own.

Whoever wants bytes asks for the next piece, so nobody sends more than the other end can take.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from ostler.link.messages import Call, Verb, verbs_of
from ostler.link.peer import Peer
from ostler.link.workspaces import Download, Files, Progress, Workspaces
from ostler.wire.provisioning import CreatedWorkspace
from ostler.wire.workspaces import ArchiveForm, Upload, WorkspaceOrder

P = ParamSpec("P")
T = TypeVar("T")


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that wait to be asked for."""

    stream: int
    size: int | None = None


def _verb(name: str, result: Any, **fields: Any) -> Verb:
    return Verb(name, msgspec.defstruct(name, list(fields.items()), frozen=True, kw_only=True), result)


_FILES = verbs_of(Files)
_VERBS = {
    **verbs_of(Workspaces),
    **_FILES,
    "archive": msgspec.structs.replace(_FILES["archive"], result=Opened),
    "patch": msgspec.structs.replace(_FILES["patch"], result=Opened),
    "create": _verb("create", CreatedWorkspace, order=WorkspaceOrder, stream=int),
    "upload": _verb("upload", Upload, stream=int),
    "rest": _verb("rest", None, workspace=str),
    "piece": _verb("piece", bytes | None, stream=int),
    "drop": _verb("drop", None, stream=int),
    "line": _verb("line", None, stream=int, text=str),
}


class _End:
    """One end: calls verbs of the other one, and hands out the streams that it has offered."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.peer = Peer(send, self._serve)
        self._ids = count(1)
        self._offered: dict[int, AsyncIterator[bytes]] = {}

    async def call(self, verb: str, *values: Any, **named: Any) -> Any:
        fields = _VERBS[verb].arguments.__struct_fields__
        given = {**dict.fromkeys(fields), **dict(zip(fields, values, strict=False)), **named}
        return await self.peer.call("workspaces", _VERBS[verb], **given)

    def offer(self, pieces: AsyncIterable[bytes]) -> int:
        stream = next(self._ids)
        self._offered[stream] = aiter(pieces)
        return stream

    async def taken(self, stream: int) -> AsyncIterator[bytes]:
        """What the other end offers."""
        try:
            while (piece := await self.call("piece", stream)) is not None:
                yield piece
        finally:
            await self.call("drop", stream)

    async def piece(self, stream: int) -> bytes | None:
        return await anext(self._offered[stream], None)

    async def drop(self, stream: int) -> None:
        pieces = self._offered.pop(stream, None)
        if (close := getattr(pieces, "aclose", None)) is not None:
            await close()

    async def _serve(self, call: Call) -> Any:
        given = msgspec.msgpack.decode(call.arguments, type=_VERBS[call.verb].arguments)
        return await self.done(call.verb, **msgspec.structs.asdict(given))

    async def done(self, verb: str, **given: Any) -> Any:
        return await getattr(self, verb)(**given)


def _travels(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_End, P], Coroutine[Any, Any, T]]:
    """A verb of a protocol that is done as it is at the other end."""

    async def travelling(end: _End, /, *values: P.args, **named: P.kwargs) -> T:
        done: T = await end.call(verb.__name__, *values, **named)
        return done

    return travelling


class RemoteFiles(_End):
    """Implements link.workspaces.Files; the server's end."""

    list = _travels(Files.list)
    stat = _travels(Files.stat)
    read = _travels(Files.read)
    write = _travels(Files.write)
    remove = _travels(Files.remove)
    search = _travels(Files.search)
    diff = _travels(Files.diff)

    async def archive(self, workspace: str, form: ArchiveForm) -> Download:
        """The whole tree."""
        return self._download(await self.call("archive", workspace, form))

    async def patch(self, workspace: str, *, old: str, new: str) -> Download:
        """The difference as a patch."""
        return self._download(await self.call("patch", workspace, old=old, new=new))

    def _download(self, opened: Opened) -> Download:
        return Download(pieces=self.taken(opened.stream), size=opened.size)


class RemoteWorkspaces(RemoteFiles):
    """Implements link.workspaces.Workspaces; the server's end."""

    check = _travels(Workspaces.check)
    check_folder = _travels(Workspaces.check_folder)
    get = _travels(Workspaces.get)
    entry = _travels(Workspaces.entry)
    devcontainer = _travels(Workspaces.devcontainer)
    destroy = _travels(Workspaces.destroy)
    size = _travels(Workspaces.size)
    keep_only = _travels(Workspaces.keep_only)
    snapshot = _travels(Workspaces.snapshot)
    restore = _travels(Workspaces.restore)
    fork = _travels(Workspaces.fork)
    deliver = _travels(Workspaces.deliver)
    refs = _travels(Workspaces.refs)
    providers = _travels(Workspaces.providers)
    runtimes = _travels(Workspaces.runtimes)

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__(send)
        self._progress: dict[int, Progress] = {}
        self._resting: set[asyncio.Task[None]] = set()

    @property
    def files(self) -> Files:
        """Their files."""
        return self

    async def create(self, order: WorkspaceOrder, progress: Progress) -> CreatedWorkspace:
        """Make a workspace there, and hear of it line by line."""
        stream = next(self._ids)
        self._progress[stream] = progress
        try:
            made: CreatedWorkspace = await self.call("create", order, stream)
        finally:
            del self._progress[stream]
        return made

    async def line(self, stream: int, text: str) -> None:
        """A line of progress from there."""
        if (progress := self._progress.get(stream)) is not None:
            progress(text)

    async def upload(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Send an archive."""
        stream = self.offer(chunks)
        try:
            made: Upload = await self.call("upload", stream)
        finally:
            await self.drop(stream)
        return made

    def rest(self, workspace: str) -> None:
        """Tell it without waiting."""
        task = asyncio.create_task(self.call("rest", workspace))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)


class WorkspacesDesk(_End):
    """Serves the calls of a server; the runner's end."""

    def __init__(self, workspaces: Workspaces, send: Callable[[bytes], None]) -> None:
        super().__init__(send)
        self._workspaces = workspaces
        self._lines: set[asyncio.Task[Any]] = set()

    async def done(self, verb: str, **given: Any) -> Any:
        """One call."""
        match verb:
            case "piece" | "drop" | "create" | "upload" | "rest":
                return await getattr(self, verb)(**given)
            case "archive" | "patch":
                download: Download = await getattr(self._workspaces.files, verb)(**given)
                return Opened(stream=self.offer(download.pieces), size=download.size)
            case _:
                target = self._workspaces.files if verb in _FILES else self._workspaces
                return await getattr(target, verb)(**given)

    async def create(self, order: WorkspaceOrder, stream: int) -> CreatedWorkspace:
        """Make a workspace; all lines are there before the answer."""

        def tell(line: str) -> None:
            task = asyncio.create_task(self.call("line", stream, line))
            self._lines.add(task)
            task.add_done_callback(self._lines.discard)

        made = await self._workspaces.create(order, tell)
        await asyncio.gather(*self._lines)
        return made

    async def upload(self, stream: int) -> Upload:
        """Take in what the server offers."""
        return await self._workspaces.upload(self.taken(stream))

    async def rest(self, workspace: str) -> None:
        """Give back what a workspace needs only while it is in use."""
        self._workspaces.rest(workspace)
