"""The asynchronous client."""

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from weakref import WeakSet

import httpx

from ostler.client import operations as op
from ostler.client import work
from ostler.client.calls import Call, answer, api_error, headers_of
from ostler.client.errors import ClientError, ConnectionLost
from ostler.client.events import Cursor, SessionEvent, Stream, check_stream, closed, project_stream, session_stream
from ostler.client.http import limit, options, translated
from ostler.client.transport import ANSWER_SECONDS, CLOSE_SECONDS, DEFAULT_ADDRESS, SILENCE_SECONDS
from ostler.client.turns import Decide, DecideLater, OwnTurn
from ostler.wire.events import PermissionRequested
from ostler.wire.parts import InputPart
from ostler.wire.sessions import PromptReceipt, Session, WhenBusy

P = ParamSpec("P")
T = TypeVar("T")
Async = Coroutine[Any, Any, T]


class AsyncTransport:
    """Sends calls and reads streams."""

    def __init__(self, base_url: str, token: str | None, timeout: float, silence: float) -> None:
        self.address = base_url
        self.reached = False
        self._silence = silence
        self._held: WeakSet[AsyncGenerator[SessionEvent, None]] = WeakSet()
        self._open: set[asyncio.Event] = set()
        self._http = httpx.AsyncClient(**options(base_url, token, timeout))

    async def run(self, call: Call[T]) -> T:
        """Send a call, once more if the connection breaks under it."""
        own = headers_of(call)
        try:
            return await self._send(call, own)
        except ConnectionLost:
            if not call.repeatable:
                raise
        return await self._send(call, own)

    async def _send(self, call: Call[T], own: dict[str, str]) -> T:
        timeout = httpx.USE_CLIENT_DEFAULT if call.timeout is None else limit(call.timeout)
        with translated(self.address):
            response = await self._http.request(
                call.method, call.path, params=call.params, content=call.body, headers=own, timeout=timeout
            )
        self.reached = True
        return answer(call, response.status_code, response.headers.get("content-type", ""), response.content)

    def follow(self, stream: Stream) -> AsyncGenerator[SessionEvent, None]:
        """Each event once, over as many connections as it takes."""
        events = self._events(stream)
        self._held.add(events)
        return events

    async def _events(self, stream: Stream) -> AsyncGenerator[SessionEvent, None]:
        cursor, ended = Cursor(stream), asyncio.Event()
        self._open.add(ended)
        try:
            while not cursor.ended:
                try:
                    async with self._connected(stream, cursor) as response:
                        async for chunk in response.aiter_bytes():
                            for event in cursor.feed(chunk):
                                yield event
                            if cursor.ended:
                                return
                    raise closed(self.address)
                except ClientError as error:
                    delay = cursor.delay_after(error, reached=self.reached)
                await asyncio.sleep(delay)
        finally:
            self._open.discard(ended)
            ended.set()

    @asynccontextmanager
    async def _connected(self, stream: Stream, cursor: Cursor) -> AsyncIterator[httpx.Response]:
        cursor.connected()
        position = cursor.position
        with translated(self.address):
            async with self._http.stream(
                "GET",
                stream.path,
                params=stream.params(position),
                headers=stream.headers(position),
                timeout=limit(self._silence),
            ) as response:
                self.reached = True
                kind = response.headers.get("content-type", "")
                if not response.is_success:
                    raise api_error(response.status_code, kind, await response.aread())
                check_stream(response.status_code, kind)
                yield response

    async def close(self) -> None:
        """End all streams, also those that were left in the middle, and give the connections back."""
        for events in list(self._held):
            with suppress(RuntimeError):  # another task reads it, and will hear of the closed connection
                await events.aclose()
        leaving = [asyncio.ensure_future(ended.wait()) for ended in self._open]
        if leaving:  # the event loop is closing them since nobody holds them any more
            _, late = await asyncio.wait(leaving, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
        await self._http.aclose()


class AsyncGroup:
    """Operations on one noun."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport


def _verb(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncGroup, P], Async[T]]:
    @functools.wraps(build)
    async def run(group: AsyncGroup, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await group._transport.run(build(*args, **kwargs))

    return run


def _opening(build: Callable[P, Call[Session]]) -> Callable[Concatenate[AsyncGroup, P], Async["AsyncSession"]]:
    @functools.wraps(build)
    async def run(group: AsyncGroup, /, *args: P.args, **kwargs: P.kwargs) -> "AsyncSession":
        return AsyncSession(group._transport, await group._transport.run(build(*args, **kwargs)))

    return run


def _own(build: Callable[Concatenate[str, P], Call[T]]) -> Callable[Concatenate["AsyncSession", P], Async[T]]:
    @functools.wraps(build)
    async def run(session: "AsyncSession", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return session._noted(await session._transport.run(build(session.id, *args, **kwargs)))

    return run


def _other(
    build: Callable[Concatenate[str, P], Call[Session]],
) -> Callable[Concatenate["AsyncSession", P], Async["AsyncSession"]]:
    """For what makes another session out of this one."""

    @functools.wraps(build)
    async def run(session: "AsyncSession", /, *args: P.args, **kwargs: P.kwargs) -> "AsyncSession":
        return AsyncSession(session._transport, await session._transport.run(build(session.id, *args, **kwargs)))

    return run


class AsyncSystem(AsyncGroup):
    """The server itself."""

    health = _verb(op.health)
    ready = _verb(op.ready)
    version = _verb(op.version)
    openapi = _verb(op.openapi)
    metrics = _verb(op.metrics)
    schema = _verb(op.schema)


class AsyncAgents(AsyncGroup):
    """What can be run."""

    list = _verb(op.list_agents)
    get = _verb(op.get_agent)
    install = _verb(op.install_agent)
    modes = _verb(op.agent_modes)
    models = _verb(op.agent_models)


class AsyncSessions(AsyncGroup):
    """Conversations with agents; `create` and `open` give a handle."""

    create = _opening(op.create_session)
    open = _opening(op.get_session)
    list = _verb(op.list_sessions)
    get = _verb(op.get_session)
    update = _verb(op.update_session)
    delete = _verb(op.delete_session)
    stop = _verb(op.stop_session)
    cancel = _verb(op.cancel_session)
    pause = _verb(op.pause_session)
    resume = _verb(op.resume_session)
    interrupt = _verb(op.interrupt_session)
    send = _verb(op.send_message)
    messages = _verb(op.list_messages)
    queue = _verb(op.get_queue)
    unqueue = _verb(op.unqueue_prompt)
    clear_queue = _verb(op.clear_queue)
    turns = _verb(op.list_turns)
    workspace = _verb(work.get_workspace)
    open_ide = _verb(work.open_ide)
    snapshots = _verb(work.list_snapshots)
    diff = _verb(work.get_diff)
    patch = _verb(work.get_patch)
    rewind = _verb(work.rewind_session)
    restore = _verb(work.restore_snapshot)
    fork = _opening(work.fork_session)
    deliver = _verb(work.deliver_session)


class AsyncTasks(AsyncGroup):
    """Work on repositories."""

    create = _verb(work.create_task)
    list = _verb(work.list_tasks)
    get = _verb(work.get_task)


class AsyncFiles(AsyncGroup):
    """The files of sessions' workspaces."""

    list = _verb(work.list_files)
    stat = _verb(work.stat_file)
    read = _verb(work.read_file)
    image = _verb(work.show_image)
    write = _verb(work.write_file)
    remove = _verb(work.remove_file)
    search = _verb(work.search_files)
    archive = _verb(work.archive_files)
    artifacts = _verb(work.list_artifacts)


class AsyncCatalogue(AsyncGroup):
    """What tasks can be ordered with."""

    runtimes = _verb(work.list_runtimes)
    runners = _verb(work.list_runners)
    refs = _verb(work.list_refs)
    projects = _verb(work.list_projects)
    upload = _verb(work.create_upload)
    send_upload = _verb(work.send_upload)


class AsyncEvents(AsyncGroup):
    """Logs of sessions."""

    list = _verb(op.list_events)
    logs = _verb(op.list_logs)
    project = _verb(op.project_events)

    def stream(
        self, session: str, *, offset: int = 0, include_raw: bool = False, reconnect_for: float | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Every event of a session once, past and future, until the session ends."""
        return self._transport.follow(
            session_stream(session, offset=offset, include_raw=include_raw, reconnect_for=reconnect_for)
        )

    def stream_project(
        self, *, offset: int | None = None, reconnect_for: float | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Every event of all sessions once; without an offset those from now on."""
        return self._transport.follow(project_stream(offset=offset, reconnect_for=reconnect_for))


class AsyncAsks(AsyncGroup):
    """What waits for a person."""

    list = _verb(op.list_asks)
    permission = _verb(op.reply_permission)
    answer = _verb(op.answer_question)
    reject = _verb(op.reject_question)


class AsyncTurn(OwnTurn):
    """The turn of one prompt; `text`, `outcome`, `error` and `usage` grow as its events are read."""

    def __init__(self, session: "AsyncSession", receipt: PromptReceipt) -> None:
        super().__init__(receipt)
        self._session = session
        self._events = session.events(offset=session.seen)

    async def events(self) -> AsyncGenerator[SessionEvent, None]:
        """The events of this turn alone, each once, until it is over; asking again goes on where one left."""
        async for event in self._events:
            own = self.take(event)
            if self.outcome is not None:
                self._session.seen = event.sequence
                await self._events.aclose()
            for each in own:
                yield each

    async def wait(self, on_permission: Decide | DecideLater | None = None) -> Self:
        """Read to the end; permissions are decided by `on_permission`, or by whoever else looks at the session."""
        async for event in self.events():
            if on_permission is not None and isinstance(event, PermissionRequested):
                decided = on_permission(event.data)
                reply = decided if isinstance(decided, str) else await decided
                await self._session.reply(event.data.permission_id, reply)
        return self


class AsyncSession:
    """A handle on one session; `info` is the newest state this handle has seen."""

    def __init__(self, transport: AsyncTransport, info: Session) -> None:
        self._transport = transport
        self.info = info
        self.seen = info.last_sequence
        """Up to where the log is known to hold nothing of a turn to come."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    @property
    def key(self) -> str:
        """The name its creator gave it."""
        return self.info.key

    def _noted(self, result: T) -> T:
        if isinstance(result, Session):
            self.info = result
        return result

    refresh = _own(op.get_session)
    update = _own(op.update_session)
    delete = _own(op.delete_session)
    stop = _own(op.stop_session)
    cancel = _own(op.cancel_session)
    pause = _own(op.pause_session)
    resume = _own(op.resume_session)
    interrupt = _own(op.interrupt_session)
    send = _own(op.send_message)
    messages = _own(op.list_messages)
    queue = _own(op.get_queue)
    unqueue = _own(op.unqueue_prompt)
    clear_queue = _own(op.clear_queue)
    turns = _own(op.list_turns)
    workspace = _own(work.get_workspace)
    open_ide = _own(work.open_ide)
    snapshots = _own(work.list_snapshots)
    diff = _own(work.get_diff)
    patch = _own(work.get_patch)
    rewind = _own(work.rewind_session)
    restore = _own(work.restore_snapshot)
    fork = _other(work.fork_session)
    deliver = _own(work.deliver_session)
    files = _own(work.list_files)
    read_file = _own(work.read_file)
    write_file = _own(work.write_file)
    logs = _own(op.list_logs)
    reply = _own(op.reply_permission)
    answer = _own(op.answer_question)
    reject = _own(op.reject_question)

    def events(
        self, *, offset: int = 0, include_raw: bool = False, reconnect_for: float | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """The whole log from its beginning, or after `offset`: each event once, until the session ends.

        To hear what becomes of one prompt, use `run` or `start`.
        """
        return self._transport.follow(
            session_stream(self.id, offset=offset, include_raw=include_raw, reconnect_for=reconnect_for)
        )

    async def start(self, message: str | Sequence[InputPart], *, when_busy: WhenBusy = "queue") -> AsyncTurn:
        """Send a prompt; its turn's `events()` are those of this prompt and no other."""
        return AsyncTurn(self, await self.send(message, when_busy=when_busy))

    async def run(
        self,
        message: str | Sequence[InputPart],
        *,
        when_busy: WhenBusy = "queue",
        on_permission: Decide | DecideLater | None = None,
    ) -> AsyncTurn:
        """Send a prompt and wait until its turn is over; `text` of the turn is what the agent said."""
        turn = await self.start(message, when_busy=when_busy)
        return await turn.wait(on_permission)


class AsyncClient:
    """A server's operations by noun; use it with `async with`."""

    def __init__(
        self,
        base_url: str = DEFAULT_ADDRESS,
        token: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self._transport = AsyncTransport(base_url, token, timeout, silence)
        self.system = AsyncSystem(self._transport)
        self.agents = AsyncAgents(self._transport)
        self.sessions = AsyncSessions(self._transport)
        self.events = AsyncEvents(self._transport)
        self.asks = AsyncAsks(self._transport)
        self.tasks = AsyncTasks(self._transport)
        self.files = AsyncFiles(self._transport)
        self.catalogue = AsyncCatalogue(self._transport)

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
