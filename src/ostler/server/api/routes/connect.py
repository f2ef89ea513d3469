"""The ways between leaders and followers: keys, handshakes, the relay and the SOCKS proxy."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, WebSocket, get, post, websocket
from litestar.params import Parameter, QueryParameter

from ostler.base.errors import Forbidden, InvalidRequest
from ostler.server.api.accept import SSE
from ostler.server.api.described import answer
from ostler.server.api.routes.fleets import first_seq
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.auth.scope import Scope
from ostler.server.fleets.overlays import overlay_keys
from ostler.server.fleets.relay import Mailbox, MailStream, frame
from ostler.server.sessions.log.fleet import FleetState, KnownHost, Taken
from ostler.server.sessions.session import SessionCore
from ostler.wire import fleets
from ostler.wire.connecting import (
    AskKeys,
    AskToken,
    ControlOrder,
    Handshake,
    HandshakeAck,
    HandshakeStatus,
    OrderTaken,
    OverlayKeys,
    RunStatus,
    SessionToken,
    SocksAccess,
)
from ostler.wire.fleets import LONGEST_MESSAGE, IngestReceipt

_TAGS = ["fleets"]
_ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what is told is replaced
Host = Annotated[str, Parameter(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", description="The follower's name.")]
Instance = Annotated[
    str | None,
    Parameter(
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="What the follower calls itself whenever it connects: while it listens nobody else has its name.",
    ),
]
Run = Annotated[str, Parameter(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Which run.")]
SessionId = Annotated[str, QueryParameter(name="sessionId", description="The session's id or key.")]
_SEQUENCE = {
    "name": "Event-Sequence",
    "in": "header",
    "description": "Number among what this follower says; what was taken already is left out.",
    "schema": {"type": "integer", "minimum": 1},
}


@post("/connect/keys", operation_id="connect.keys", tags=_TAGS, status_code=200, role="operator", reach="server")
async def keys(services: Services, data: AskKeys) -> OverlayKeys:
    """A key to join an overlay network with, of the first of these that the server has an account of."""
    return await overlay_keys(services.settings, data)


@post("/connect/tokens", operation_id="connect.tokens", tags=_TAGS, status_code=200, role="operator")
async def tokens(services: Services, caller: Scope, project: str, data: AskToken) -> SessionToken:
    """A token for the followers of one session, or for tools of its agent: it opens nothing of another session."""
    live = await services.sessions.registry.live(project, data.session_id)
    live.core.refuse_if_over("tokens")
    token, until = services.session_tokens.issue(caller, live.core.id, data.seconds)
    return SessionToken(session_id=live.core.id, token=token, expires_at=until)


def _own(caller: Scope, named: str) -> str:
    """The session that a body names; raises if the credential is for another one."""
    if caller.session not in {None, named}:
        raise Forbidden(actor=caller.actor, role="for the fleet of that session alone", needed="a key of the project")
    return named


@post(
    "/connect/handshake",
    operation_id="connect.handshake",
    tags=_TAGS,
    status_code=200,
    role="operator",
    checks_session=True,
)
async def handshake(services: Services, caller: Scope, project: str, data: Handshake) -> HandshakeStatus:
    """Ask followers how they can be reached, and wait for their answers."""
    live = await services.sessions.registry.live(project, _own(caller, data.session_id))
    return await services.relay.handshake(live.core.id, data.hosts, data.timeout_sec)


@post(
    "/connect/handshake/ack",
    operation_id="connect.ack",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="operator",
    checks_session=True,
)
async def handshake_ack(services: Services, caller: Scope, project: str, data: HandshakeAck) -> OrderTaken:
    """What a follower says of how it can be reached."""
    live = await services.sessions.registry.live(project, _own(caller, data.session_id))
    services.relay.ack(msgspec.structs.replace(data, session_id=live.core.id))
    return OrderTaken(delivered=True)


@get("/connect/socks", operation_id="connect.socks", tags=_TAGS, role="operator", for_session=True)
async def socks(
    services: Services, project: str, session_id: SessionId, request: Request[Any, Any, Any]
) -> SocksAccess:
    """Where the SOCKS5 proxy is and a password that reaches the peers of this session, for an hour."""
    live = await services.sessions.registry.live(project, session_id)
    live.core.refuse_if_over("connections")
    access = services.rendezvous.access(live.core.id, services.clock.now())
    if access.host in _ANY:  # it is there at the address that the server was found at
        return msgspec.structs.replace(access, host=request.url.hostname or access.host)
    return access


@websocket("/connect/socks/register", role="operator", for_session=True)
async def register(
    socket: WebSocket[Any, Any, Any],
    services: Services,
    project: str,
    session_id: SessionId,
    peer: Annotated[str, QueryParameter(name="peerId", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")],
    role: Annotated[str, Parameter(pattern="^(leader|follower)$")] = "follower",
    stream: str | None = None,
) -> None:
    """A peer registers its targets; with `stream` it brings one connection that it was asked for."""
    live = await services.sessions.registry.live(project, session_id)
    live.core.refuse_if_over("peers")
    services.rendezvous.refuse_if_full(live.core.id, peer)
    await socket.accept()
    over = await services.rendezvous.serve(live.core.id, peer, stream, _Socket(socket), lambda: live.core.state.ended)
    if over is not None:
        await socket.close(*over)


class _Socket:
    """Implements rendezvous.PeerSocket."""

    def __init__(self, socket: WebSocket[Any, Any, Any]) -> None:
        self._socket = socket

    async def send_text(self, text: str) -> None:
        """Send words."""
        await self._socket.send({"type": "websocket.send", "bytes": None, "text": text})

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes."""
        await self._socket.send({"type": "websocket.send", "bytes": data, "text": None})

    async def receive(self) -> bytes | str | None:
        """The next message."""
        event: Any = await self._socket.receive()
        if event["type"] != "websocket.receive":
            return None
        text = event.get("text")
        return str(text) if text is not None else bytes(event.get("bytes") or b"")


@get(
    "/relay/{session:str}/{host:str}/control",
    operation_id="relay.control",
    tags=_TAGS,
    role="operator",
    for_session=True,
    answers={"200": answer("Orders for the follower.", {SSE: "ControlOrder"})},
)
async def control(
    session: str, host: Host, services: Services, project: str, follower: Instance = None
) -> Response[Any]:
    """Orders for a follower: `hello` with `lastSeq`, `run`, `signal`, `handshake`, `close`; last `replaced`."""
    live = await services.sessions.registry.live(project, session)
    live.core.refuse_if_over("followers")
    services.relay.check(live.core.id, host, follower)
    taken = (live.core.shown.fleet or FleetState()).taken.get(host, Taken())
    hello = frame(msgspec.json.encode({"type": "hello", "lastSeq": taken.last}))
    mailbox, replaced = services.relay.control(live.core.id, host), frame(b'{"type":"replaced"}')
    return _mail(services, live.core, mailbox, hello, follower, replaced)


def _mail(
    services: Services, session: SessionCore, mailbox: Mailbox, first: bytes, follower: str | None, last: bytes = b""
) -> EventStream:
    heartbeat = services.settings.heartbeat_seconds
    stream = MailStream(mailbox, first, heartbeat, lambda: session.state.ended, follower=follower, replaced=last)
    return EventStream(stream, None, services)


@get(
    "/relay/{session:str}/{host:str}/stdin",
    operation_id="relay.stdin",
    tags=_TAGS,
    role="operator",
    for_session=True,
    answers={"200": answer("Input: `data` in base64, and `end` after the last.", {SSE: "OrderTaken"})},
)
async def stdin(session: str, host: Host, services: Services, project: str, follower: Instance = None) -> Response[Any]:
    """The input for what runs on a follower, with the `run` that it is for if its sender named one."""
    live = await services.sessions.registry.live(project, session)
    live.core.refuse_if_over("followers")
    services.relay.check(live.core.id, host, follower)
    return _mail(services, live.core, services.relay.stdin(live.core.id, host), b": input\n\n", follower)


@post(
    "/relay/{session:str}/{host:str}/control",
    operation_id="relay.order",
    tags=_TAGS,
    status_code=200,
    role="operator",
    for_session=True,
    body="ControlOrder",
)
async def order(session: str, host: Host, services: Services, project: str, data: ControlOrder) -> OrderTaken:
    """Hand an order to a follower; the answer comes when it has it."""
    live = await services.sessions.registry.live(project, session)
    live.core.refuse_if_over("orders")
    await services.relay.order(live.core.id, host, data)
    return OrderTaken(delivered=True)


@post(
    "/relay/{session:str}/{host:str}/stdin",
    operation_id="relay.write",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="operator",
    for_session=True,
)
async def write(
    session: str,
    host: Host,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    run: Run | None = None,
) -> OrderTaken:
    """Hand input, the body as it is, to a run on a follower; an empty body is the end of it.

    Without `run` it is for what runs there now, or begins next.
    """
    live = await services.sessions.registry.live(project, session)
    live.core.refuse_if_over("input")
    await services.relay.write(live.core.id, host, await request.body(), run)
    return OrderTaken(delivered=True)


@post(
    "/relay/{session:str}/{host:str}/{stream:str}",
    operation_id="relay.output",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="operator",
    for_session=True,
    request_headers=[_SEQUENCE],
    limits={"stream": {"enum": ["stdout", "stderr"]}},
)
async def output(
    session: str,
    host: Host,
    stream: Literal["stdout", "stderr"],
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    run: Run | None = None,
) -> IngestReceipt:
    """What a follower's command printed, the body as it is: it becomes `host.log` events of the session."""
    live = await services.sessions.registry.live(project, session)
    text = (await request.body()).decode("utf-8", "replace")
    if len(text) > LONGEST_MESSAGE:
        raise InvalidRequest(
            reason=f"Send at most {LONGEST_MESSAGE} characters at once.", errors={"body": ["too long"]}
        )
    printed = fleets.ReportHostLog(host=host, stream=stream, message=text, run=run, seq=first_seq(request), origin=host)
    return await services.ingest.take(live, lambda: (printed,))


@post(
    "/relay/{session:str}/{host:str}/status",
    operation_id="relay.status",
    audited=False,
    tags=_TAGS,
    status_code=200,
    role="operator",
    for_session=True,
    request_headers=[_SEQUENCE],
)
async def status(
    session: str, host: Host, services: Services, project: str, request: Request[Any, Any, Any], data: RunStatus
) -> IngestReceipt:
    """How a run on a follower stands: an event of the session. One is a follower from `joined` to `left`."""
    live = await services.sessions.registry.live(project, session)
    seq = first_seq(request)
    return await services.ingest.take(live, lambda: (_reported(live.core, host, data, seq),))


def _reported(session: SessionCore, host: str, data: RunStatus, seq: int | None) -> fleets.IngestedEvent:
    known = (session.state.fleet or FleetState()).hosts
    others = tuple(_known(each) for each in known if each.name != host)
    if data.state == "left":
        return fleets.ReportFollowers(hosts=others, seq=seq, origin=host)
    if data.state == "joined":
        mine = fleets.ReportedHost(
            name=host, os=data.os or "unknown", tags=data.tags, folder=data.folder, ssh_user=data.ssh_user
        )
        return fleets.ReportFollowers(hosts=(*others, mine)[-fleets.MOST_HOSTS :], seq=seq, origin=host)
    if data.state == "started":
        return fleets.ReportHostStarted(host=host, run=data.run, seq=seq, origin=host)
    return fleets.ReportHostExited(
        host=host, code=-1 if data.code is None else data.code, run=data.run, seq=seq, origin=host
    )


def _known(host: KnownHost) -> fleets.ReportedHost:
    return msgspec.convert(host, fleets.ReportedHost, from_attributes=True)


HANDLERS = (
    keys,
    tokens,
    handshake,
    handshake_ack,
    socks,
    register,
    control,
    stdin,
    order,
    write,
    output,
    status,
)
