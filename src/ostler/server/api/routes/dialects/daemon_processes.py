"""Processes of a machine for clients of the daemon API, at /v1/processes.

They take the role `admin` of the whole server: a command runs as the runner's user, and nobody asks before it does.
"""

import asyncio
import signal
from contextlib import suppress
from typing import Annotated, Any, cast

import msgspec
from litestar import Request, Response, WebSocket, delete, get, post, route, websocket
from litestar.datastructures import State
from litestar.exceptions import WebSocketDisconnect, WebSocketException
from litestar.params import Parameter, QueryParameter

from ostler.base.errors import NotSupported, OstlerError
from ostler.base.errors.commands import CommandConflict
from ostler.server.api.accept import JSON, SSE
from ostler.server.api.described import answer
from ostler.server.api.routes.events import resume_from
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.auth.scope import Scope
from ostler.server.dialects.daemon.processes import (
    Beginning,
    DaemonProcess,
    DaemonProcessConfig,
    DaemonProcessCreate,
    DaemonProcesses,
    DaemonProcessInput,
    DaemonProcessLogs,
    DaemonProcessResult,
    DaemonProcessRun,
    DaemonProcessTyped,
    DaemonTerminalSize,
    Handle,
    LogStream,
    LogStreamCursor,
    Processes,
    log_entry,
)
from ostler.server.sessions.creation import granted

_CONFIG = "daemon_process_config"
_TAGS = ["daemon"]
_WAIT_SECONDS = 15.0
Session = Annotated[
    str | None, QueryParameter(name="sessionId", description="Start it where this session is, in its folder and home.")
]
WaitMs = Annotated[int, QueryParameter(name="waitMs", description="How long to wait for its end.", ge=0, le=60_000)]


class _Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What a terminal's client sends as text."""

    type: str
    data: str = ""
    encoding: str | None = None
    cols: int = 0
    rows: int = 0


def _config(state: State) -> DaemonProcessConfig:
    found: DaemonProcessConfig = state.setdefault(_CONFIG, DaemonProcessConfig())
    return found


def _processes(services: Services, state: State) -> Processes:
    linked = [known.about.id for known in services.runners.known if known.link is not None]
    return Processes({runner: services.runners.workspaces(runner) for runner in linked}, _config(state))


async def _beginning(services: Services, caller: Scope, session: str | None) -> Beginning:
    found = (await services.sessions.registry.live(caller.project, session)).core if session else None
    runner = services.runners.any() if found is None or found.record.runner is None else found.record.runner
    grant = granted(caller.tenant, caller.project)
    return Beginning(runner=runner, workspaces=services.runners.workspaces(runner), session=found, grant=grant)


@get(
    "/v1/processes/config",
    operation_id="daemon.process-config",
    tags=_TAGS,
    role="admin",
    reach="server",
    sync_to_thread=False,
)
def get_config(state: State) -> DaemonProcessConfig:
    """What processes may take."""
    return _config(state)


@post(
    "/v1/processes/config",
    operation_id="daemon.set-process-config",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
    sync_to_thread=False,
)
def set_config(state: State, data: DaemonProcessConfig) -> DaemonProcessConfig:
    """Change what processes may take, until this server ends."""
    state[_CONFIG] = data
    return data


@post("/v1/processes", operation_id="daemon.process-start", tags=_TAGS, status_code=200, role="admin", reach="server")
async def start_process(
    caller: Scope,
    services: Services,
    state: State,
    data: DaemonProcessCreate,
    session: Session = None,
) -> DaemonProcess:
    """Start a program."""
    return await _processes(services, state).start(data, await _beginning(services, caller, session))


@post("/v1/processes/run", operation_id="daemon.process-run", tags=_TAGS, status_code=200, role="admin", reach="server")
async def run_process(
    caller: Scope,
    services: Services,
    state: State,
    data: DaemonProcessRun,
    session: Session = None,
) -> DaemonProcessResult:
    """Run a program to its end, or for so long as it may."""
    return await _processes(services, state).run(data, await _beginning(services, caller, session))


@get("/v1/processes", operation_id="daemon.processes", tags=_TAGS, role="admin", reach="server")
async def list_processes(
    services: Services,
    state: State,
    owner: Annotated[str | None, Parameter(description="Only `user` has any.", max_length=20)] = None,
) -> DaemonProcesses:
    """The processes that run, and those that ended lately."""
    if owner not in {None, "user"}:
        return DaemonProcesses(processes=())
    return await _processes(services, state).all()


@get("/v1/processes/{process:str}", operation_id="daemon.process", tags=_TAGS, role="admin", reach="server")
async def get_process(process: str, services: Services, state: State) -> DaemonProcess:
    """One process."""
    return await _processes(services, state).of(process).shown()


@post(
    "/v1/processes/{process:str}/stop",
    operation_id="daemon.process-stop",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def stop_process(process: str, services: Services, state: State, wait_ms: WaitMs = 0) -> DaemonProcess:
    """Ask it to end (SIGTERM)."""
    return await _processes(services, state).of(process).signal(signal.SIGTERM, wait_ms)


@post(
    "/v1/processes/{process:str}/kill",
    operation_id="daemon.process-kill",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def kill_process(process: str, services: Services, state: State, wait_ms: WaitMs = 0) -> DaemonProcess:
    """End it and what it started at once (SIGKILL)."""
    return await _processes(services, state).of(process).signal(signal.SIGKILL, wait_ms)


@delete("/v1/processes/{process:str}", operation_id="daemon.process-forget", tags=_TAGS, role="admin", reach="server")
async def forget_process(process: str, services: Services, state: State) -> None:
    """Forget a process that has ended, and what it said."""
    await _processes(services, state).of(process).forget()


@get(
    "/v1/processes/{process:str}/logs",
    operation_id="daemon.process-logs",
    tags=_TAGS,
    role="admin",
    reach="server",
    answers={
        "200": answer(
            "What is kept; with `follow` a stream of it, and of more until it ends.",
            {JSON: "DaemonProcessLogs", SSE: "DaemonProcessLogEntry"},
        )
    },
)
async def process_logs(
    process: str,
    request: Request[Any, Any, Any],
    services: Services,
    state: State,
    stream: LogStream | None = None,
    tail: Annotated[int | None, Parameter(description="Only so many pieces, the newest.", ge=0, le=100_000)] = None,
    since: Annotated[int, Parameter(description="Only pieces behind this number.", ge=0)] = 0,
    follow: bool = False,
) -> Response[DaemonProcessLogs]:
    """What it said."""
    handle = _processes(services, state).of(process)
    shown = await handle.shown()
    if follow:
        since = resume_from(request, since)
        cursor = LogStreamCursor(handle, since, stream, tail, services.settings.heartbeat_seconds)
        return cast(Any, EventStream(cursor, None, services))  # type: ignore[no-any-return]  # a stream has no body
    found = await handle.log(since, stream, tail)
    entries = tuple(map(log_entry, found.entries))
    return Response(
        DaemonProcessLogs(process_id=process, stream=stream or ("pty" if shown.tty else "combined"), entries=entries)
    )


@post(
    "/v1/processes/{process:str}/input",
    operation_id="daemon.process-input",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def process_input(process: str, services: Services, state: State, data: DaemonProcessInput) -> DaemonProcessTyped:
    """Type something."""
    handle = _processes(services, state).of(process)
    return await handle.type_in(data, _config(state).max_input_bytes_per_request)


@post(
    "/v1/processes/{process:str}/terminal/resize",
    operation_id="daemon.process-resize",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def resize_terminal(
    process: str, services: Services, state: State, data: DaemonTerminalSize
) -> DaemonTerminalSize:
    """Tell its terminal how large it is."""
    return await _processes(services, state).of(process).resize(data)


@websocket("/v1/processes/{process:str}/terminal/ws", role="admin", reach="server")
async def terminal(
    process: str,
    socket: WebSocket[Any, Any, Any],
    services: Services,
    state: State,
    access_token: Annotated[str | None, Parameter(description="For clients that cannot send a header.")] = None,
) -> None:
    """A terminal: what it shows as binary frames, what is typed as JSON; whoever leaves does not end the process."""
    await socket.accept()
    with suppress(RuntimeError, OSError, WebSocketException):  # the client has left
        try:
            handle = await _with_terminal(_processes(services, state), process)
            await socket.send_text(_text(type="ready", processId=process))
            await _talk(socket, handle)
        except OstlerError as error:
            await socket.send_text(_text(type="error", message=str(error)))
        await socket.close()


async def _with_terminal(processes: Processes, process: str) -> Handle:
    handle = processes.of(process)
    if not (await handle.shown()).tty:
        raise CommandConflict(reason=f"The process '{process}' has no terminal. Start it with `tty`.")
    return handle


def _text(**frame: Any) -> str:
    return msgspec.json.encode(frame).decode()


async def _talk(socket: WebSocket[Any, Any, Any], handle: Handle) -> None:
    """Until the process ends or the client leaves."""
    tasks = {asyncio.create_task(_show(socket, handle)), asyncio.create_task(_listen(socket, handle))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _show(socket: WebSocket[Any, Any, Any], handle: Handle) -> None:
    seen = 0
    while True:
        found = await handle.log(seen, "pty", wait=_WAIT_SECONDS)
        for entry in found.entries:
            await socket.send_bytes(entry.data)
            seen = entry.sequence
        if found.is_over and not found.entries:
            code = (await handle.shown()).exit_code
            await socket.send_text(_text(type="exit", exitCode=code))
            return


async def _listen(socket: WebSocket[Any, Any, Any], handle: Handle) -> None:
    with suppress(WebSocketDisconnect):
        while (event := await socket.receive())["type"] == "websocket.receive":
            try:
                frame = msgspec.json.decode(event.get("text") or event.get("bytes") or b"", type=_Frame)
                if frame.type == "close":
                    return
                await _obey(handle, frame)
            except (OstlerError, msgspec.MsgspecError) as error:
                await socket.send_text(_text(type="error", message=str(error)))


async def _obey(handle: Handle, frame: _Frame) -> None:
    if frame.type == "resize":
        await handle.resize(msgspec.convert({"cols": frame.cols, "rows": frame.rows}, DaemonTerminalSize))
    elif frame.type == "input":
        given = msgspec.convert({"data": frame.data, "encoding": frame.encoding}, DaemonProcessInput)
        await handle.type_in(given, 2**20)


@route(
    "/v1/desktop/{what:path}",
    http_method=["GET", "POST", "DELETE"],
    role="operator",
    sync_to_thread=False,
    include_in_schema=False,
)
def desktop(what: str) -> None:
    """There is none."""
    raise NotSupported(
        reason="This server has no desktop: no display, window manager or screen recorder that it could start. "
        "Give the agent an MCP server that has a browser or a screen instead."
    )


HANDLERS = (
    desktop,
    get_config,
    set_config,
    start_process,
    run_process,
    list_processes,
    get_process,
    stop_process,
    kill_process,
    forget_process,
    process_logs,
    process_input,
    resize_terminal,
    terminal,
)
