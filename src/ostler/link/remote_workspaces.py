"""Workspaces at the other end of a link. Bytes and lines of progress travel too: each piece is a call of its own.

Whoever wants bytes asks for the next piece, so nobody sends more than the other end can take.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Self

import msgspec

from ostler.base.errors import NotSupported, Unprocessable
from ostler.base.errors.runners import LinkLost
from ostler.link.commands import Commands
from ostler.link.luggage import Download, Luggage
from ostler.link.messages import Call, Verb, verbs_of
from ostler.link.peer import Peer, Remote, Send, TakenBack, remote
from ostler.link.workspaces import Files, Progress, Workspaces
from ostler.wire.provisioning import CreatedWorkspace, WorkspaceOrder
from ostler.wire.workspaces import ArchiveForm, Upload

_MOST_LINES = 1000


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that wait to be asked for."""

    stream: int
    size: int | None = None


def _verb(name: str, result: Any, **fields: Any) -> Verb:
    return Verb(name, msgspec.defstruct(name, list(fields.items()), frozen=True, kw_only=True), result)


_FILES = verbs_of(Files)
_LUGGAGE = verbs_of(Luggage)
_COMMANDS = verbs_of(Commands)
_VERBS = {
    **verbs_of(Workspaces),
    **_FILES,
    **_LUGGAGE,
    **_COMMANDS,
    "archive": msgspec.structs.replace(_FILES["archive"], result=Opened),
    "patch": msgspec.structs.replace(_FILES["patch"], result=Opened),
    "create": _verb("create", CreatedWorkspace, order=WorkspaceOrder, stream=int),
    "upload": _verb("upload", Upload, stream=int),
    "pack": msgspec.structs.replace(_LUGGAGE["pack"], result=Opened),
    "unrecorded": msgspec.structs.replace(_LUGGAGE["unrecorded"], result=Opened),
    "memory": msgspec.structs.replace(_LUGGAGE["memory"], result=Opened),
    "take_in": _verb("take_in", None, workspace=str, stream=int),
    "put_unrecorded": _verb("put_unrecorded", None, workspace=str, stream=int),
    "remember": _verb("remember", None, session=str, workspace=str | None, stream=int),
    "rest": _verb("rest", None, workspace=str),
    "piece": _verb("piece", bytes | None, stream=int),
    "drop": _verb("drop", None, stream=int),
    "lines": _verb("lines", None, stream=int, texts=tuple[str, ...]),
}


class _End(Remote, ABC):
    """One end: calls verbs of the other one, and hands out the streams that it has offered."""

    def __init__(self, send: Send) -> None:
        super().__init__(Peer(send, self._serve), "workspaces", _VERBS)
        self._ids = count(1)
        self._offered: dict[int, AsyncIterator[bytes]] = {}
        self._asked: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._dropping: set[asyncio.Task[None]] = set()

    def offer(self, pieces: AsyncIterable[bytes]) -> int:
        stream = next(self._ids)
        self._offered[stream] = aiter(pieces)
        return stream

    def taken(self, stream: int) -> AsyncIterator[bytes]:
        """What the other end offers."""
        return _Taken(self, stream)

    async def let_go(self, stream: int) -> None:
        """Tell the other end that nobody wants more of what it offers."""
        with suppress(LinkLost):
            await self.call("drop", stream)

    def let_go_soon(self, stream: int) -> None:
        """The same for who cannot wait, from any thread."""
        self._loop.call_soon_threadsafe(self._begin_to_let_go, stream)

    def _begin_to_let_go(self, stream: int) -> None:
        task = self._loop.create_task(self.let_go(stream))
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)

    async def download(self, verb: str, /, *values: Any, **named: Any) -> Download:
        """What the other end offers as the result of a verb; who takes the call back too late lets go of it."""
        try:
            opened: Opened = await self.call(verb, *values, **named)
        except asyncio.CancelledError as error:
            if (back := TakenBack.of(error)).is_done:
                self.let_go_soon(back.result.stream)
            raise
        return Download(pieces=self.taken(opened.stream), size=opened.size)

    async def piece(self, stream: int) -> bytes | None:
        if stream not in self._offered or stream in self._asked:
            raise Unprocessable(reason=f"Nothing more can be asked of the stream {stream} now.")
        self._asked.add(stream)
        try:
            while (piece := await anext(self._offered[stream], None)) == b"":
                continue
            return piece
        finally:
            self._asked.discard(stream)

    async def drop(self, stream: int) -> None:
        pieces = self._offered.pop(stream, None)
        if (close := getattr(pieces, "aclose", None)) is not None:
            await close()

    async def close(self) -> None:
        """The link is gone: break off what is being served, and let go of what was offered."""
        await self.peer.close()
        for stream in list(self._offered):
            with suppress(Exception):  # whatever its source has to say, nobody hears it
                await self.drop(stream)

    async def _serve(self, call: Call) -> Any:
        if (verb := _VERBS.get(call.verb)) is None:
            raise NotSupported(reason=f"There is no '{call.verb}' of workspaces.")
        given = msgspec.msgpack.decode(call.arguments, type=verb.arguments)
        return await self.done(call.verb, **msgspec.structs.asdict(given))

    @abstractmethod
    async def done(self, verb: str, **given: Any) -> Any:
        """Do what the other end asks for, if this end does that for it."""


class _Taken:
    """Bytes of the other end, which hears when nobody wants more: also if nobody ever asked for the first."""

    def __init__(self, end: _End, stream: int) -> None:
        self._end = end
        self._stream = stream
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        try:
            piece: bytes | None = await self._end.call("piece", self._stream)
        except BaseException:
            await self.aclose()
            raise
        if piece:
            return piece
        await self.aclose()
        if piece is None:
            raise StopAsyncIteration
        raise LinkLost(reason="the other end sends pieces without a byte")  # there is no end of those

    async def aclose(self) -> None:
        if not self._is_over:
            self._is_over = True
            await self._end.let_go(self._stream)

    def __del__(self) -> None:
        """Whoever began to read, or did not, and went away."""
        with suppress(RuntimeError):  # the loop is closed, and with it the link
            if not self._is_over:
                self._end.let_go_soon(self._stream)


class RemoteFiles(_End):
    """Implements link.workspaces.Files; the server's end."""

    list = remote(Files.list)
    stat = remote(Files.stat)
    read = remote(Files.read)
    write = remote(Files.write)
    remove = remote(Files.remove)
    make_folder = remote(Files.make_folder)
    move = remote(Files.move)
    unpack = remote(Files.unpack)
    search = remote(Files.search)
    paths = remote(Files.paths)
    diff = remote(Files.diff)

    async def archive(self, workspace: str, form: ArchiveForm) -> Download:
        """The whole tree."""
        return await self.download("archive", workspace, form)

    async def patch(self, workspace: str, *, old: str, new: str) -> Download:
        """The difference as a patch."""
        return await self.download("patch", workspace, old=old, new=new)


class RemoteCommands(_End):
    """Implements link.commands.Commands; the server's end."""

    launch = remote(Commands.launch)
    complete = remote(Commands.complete)
    commands = remote(Commands.commands)
    command = remote(Commands.command)
    signal_command = remote(Commands.signal_command)
    forget_command = remote(Commands.forget_command)
    command_log = remote(Commands.command_log)
    type_in = remote(Commands.type_in)
    resize_terminal = remote(Commands.resize_terminal)


class RemoteWorkspaces(RemoteFiles, RemoteCommands):
    """Implements link.workspaces.Workspaces; the server's end."""

    check = remote(Workspaces.check)
    check_folder = remote(Workspaces.check_folder)
    allowed_path = remote(Workspaces.allowed_path)
    existing_files = remote(Workspaces.existing_files)
    folders = remote(Workspaces.folders)
    get = remote(Workspaces.get)
    entry = remote(Workspaces.entry)
    devcontainer = remote(Workspaces.devcontainer)
    destroy = remote(Workspaces.destroy)
    size = remote(Workspaces.size)
    forget = remote(Workspaces.forget)
    keep_only = remote(Workspaces.keep_only)
    snapshot = remote(Workspaces.snapshot)
    snapshot_of_person = remote(Workspaces.snapshot_of_person)
    restore = remote(Workspaces.restore)
    take_back = remote(Workspaces.take_back)
    apply_part = remote(Workspaces.apply_part)
    fork = remote(Workspaces.fork)
    deliver = remote(Workspaces.deliver)
    pull_request = remote(Workspaces.pull_request)
    make_repository = remote(Workspaces.make_repository)
    refs = remote(Workspaces.refs)
    providers = remote(Workspaces.providers)
    runtimes = remote(Workspaces.runtimes)
    lay_out = remote(Luggage.lay_out)

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._progress: dict[int, Progress] = {}
        self._resting: set[asyncio.Task[None]] = set()

    @property
    def files(self) -> Files:
        """Their files."""
        return self

    @property
    def programs(self) -> Commands:
        """What people start there."""
        return self

    @property
    def luggage(self) -> Luggage:
        """What travels with sessions."""
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

    async def done(self, verb: str, **given: Any) -> Any:
        """One call: a runner hands over lines and asks for bytes, and nothing else."""
        match verb:
            case "piece" | "drop" | "lines":
                return await getattr(self, verb)(**given)
        raise NotSupported(reason=f"A server does not do '{verb}' for a runner.")

    async def lines(self, stream: int, texts: tuple[str, ...]) -> None:
        """Lines of progress from there."""
        if (progress := self._progress.get(stream)) is not None:
            for text in texts:
                progress(text)

    async def upload(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Send an archive."""
        made: Upload = await self._given(chunks, lambda stream: self.call("upload", stream))
        return made

    async def _given(self, pieces: AsyncIterable[bytes], call: Callable[[int], Awaitable[Any]]) -> Any:
        """Have something done there with bytes of ours."""
        stream = self.offer(pieces)
        try:
            return await call(stream)
        finally:
            await self.drop(stream)

    async def pack(self, workspace: str, snapshot: str, *, known: tuple[str, ...]) -> Download:
        """The objects of a snapshot's tree."""
        return await self.download("pack", workspace, snapshot, known=known)

    async def memory(self, session: str, workspace: str | None, snapshot: str | None) -> Download:
        """An archive of the agent's memory."""
        return await self.download("memory", session, workspace, snapshot)

    async def unrecorded(self, workspace: str, snapshot: str) -> Download:
        """What a snapshot lacks."""
        return await self.download("unrecorded", workspace, snapshot)

    async def put_unrecorded(self, workspace: str, archive: AsyncIterable[bytes]) -> None:
        """Lay it out there."""
        await self._given(archive, lambda stream: self.call("put_unrecorded", workspace, stream))

    async def take_in(self, workspace: str, pack: AsyncIterable[bytes]) -> None:
        """Send the objects of a pack."""
        await self._given(pack, lambda stream: self.call("take_in", workspace, stream))

    async def remember(self, session: str, workspace: str | None, archive: AsyncIterable[bytes]) -> None:
        """Send a memory."""
        await self._given(archive, lambda stream: self.call("remember", session, workspace, stream))

    def rest(self, workspace: str) -> None:
        """Tell it without waiting."""
        task = asyncio.create_task(self.call("rest", workspace))
        self._resting.add(task)
        task.add_done_callback(self._resting.discard)


class _Lines:
    """Lines on their way, in order: what piles up while some are sent goes along next, the oldest give way."""

    def __init__(self, send: Callable[[tuple[str, ...]], Awaitable[Any]]) -> None:
        self._send = send
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._task: asyncio.Task[None] | None = None

    def add(self, line: str) -> None:
        self._lines.append(line)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        with suppress(LinkLost):
            while self._lines:
                texts = tuple(self._lines)
                self._lines.clear()
                await self._send(texts)
        self._task = None

    async def sent(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()


class WorkspacesService(_End):
    """Serves the calls of a server; the runner's end."""

    def __init__(self, workspaces: Workspaces, send: Send) -> None:
        super().__init__(send)
        self._workspaces = workspaces

    async def done(self, verb: str, **given: Any) -> Any:
        """One call."""
        match verb:
            case "piece" | "drop" | "create" | "upload" | "rest":
                return await getattr(self, verb)(**given)
            case "archive" | "patch":
                download: Download = await getattr(self._workspaces.files, verb)(**given)
                return Opened(stream=self.offer(download.pieces), size=download.size)
            case "pack" | "memory" | "unrecorded":
                download = await getattr(self._workspaces.luggage, verb)(**given)
                return Opened(stream=self.offer(download.pieces), size=download.size)
            case "take_in" | "remember" | "put_unrecorded":
                pieces = self.taken(given.pop("stream"))
                return await getattr(self._workspaces.luggage, verb)(*given.values(), pieces)
            case "lay_out":
                return await self._workspaces.luggage.lay_out(**given)
            case _:
                return await getattr(self._target(verb), verb)(**given)

    def _target(self, verb: str) -> Files | Commands | Workspaces:
        if verb in _COMMANDS:
            return self._workspaces.programs
        return self._workspaces.files if verb in _FILES else self._workspaces

    async def create(self, order: WorkspaceOrder, stream: int) -> CreatedWorkspace:
        """Make a workspace; all lines are there before the answer."""
        lines = _Lines(lambda texts: self.call("lines", stream, texts))
        try:
            made = await self._workspaces.create(order, lines.add)
            await lines.sent()
        finally:
            lines.close()
        return made

    async def upload(self, stream: int) -> Upload:
        """Take in what the server offers."""
        return await self._workspaces.upload(self.taken(stream))

    async def rest(self, workspace: str) -> None:
        """Give back what a workspace needs only while it is in use."""
        self._workspaces.rest(workspace)
