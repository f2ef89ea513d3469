"""The operations on followers; part of the table."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.client.calls import API, Call, get, post, segment
from ostler.wire.connecting import AskToken, ControlOrder, OrderTaken, SessionToken, SocksAccess
from ostler.wire.fleets import FollowerList, IngestedEvent, IngestReceipt


def list_followers() -> Call[FollowerList]:
    """The machines that hold copies of the files of sessions."""
    return get("/followers", msgspec.json.Decoder(FollowerList).decode)


def ingest_events(session: str, events: Sequence[IngestedEvent | dict[str, Any]]) -> Call[IngestReceipt]:
    """Add what a leader reports to the log of a session; with a `seq` each is taken once, whatever is sent again."""
    return Call(
        method="POST",
        path=f"{API}/sessions/{segment(session)}/events/ingest",
        decode=msgspec.json.Decoder(IngestReceipt).decode,
        body=msgspec.json.encode(events),
    )


def open_proxy(session: str) -> Call[SocksAccess]:
    """Where the proxy to the followers of a session is, and a password for it."""
    return get("/connect/socks", msgspec.json.Decoder(SocksAccess).decode, sessionId=session)


def session_token(session: str, *, seconds: float = 86400.0) -> Call[SessionToken]:
    """A token for the fleet of a session, which opens nothing else."""
    decode = msgspec.json.Decoder(SessionToken).decode
    return post("/connect/tokens", decode, AskToken(session_id=session, seconds=seconds))


def send_input(session: str, host: str, data: bytes, *, run: str | None = None) -> Call[OrderTaken]:
    """Hand input to a run on a follower, or to what runs there now; nothing is the end of it."""
    return Call(
        method="POST",
        path=f"{API}/relay/{segment(session)}/{segment(host)}/stdin",
        decode=msgspec.json.Decoder(OrderTaken).decode,
        params=(("run", run),) if run is not None else (),
        body=data,
        media_type="application/octet-stream",
    )


def send_order(session: str, host: str, order: ControlOrder) -> Call[OrderTaken]:
    """Hand an order to a follower; raises if it does not listen."""
    return post(f"/relay/{segment(session)}/{segment(host)}/control", msgspec.json.Decoder(OrderTaken).decode, order)
