"""What leaders report of their followers, and which followers there are."""

from typing import Any

import msgspec
from litestar import Request, get, post

from ostler.base.errors import InvalidRequest, UnsupportedMedia
from ostler.server.api.accept import JSON
from ostler.server.api.requests import respelled
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.fleets.followers import list_followers
from ostler.server.fleets.ingest import read_events, refused
from ostler.wire.fleets import FollowerList, IngestedEvent, IngestReceipt

NDJSON = "application/x-ndjson"
_LARGEST = 2**53


@get("/followers", operation_id="followers.list", tags=["fleets"], role="viewer", checks_session=True)
async def followers(services: Services, caller: Scope, project: str) -> FollowerList:
    """The machines that hold copies of the files of sessions: those that leaders told of, and configured ones.

    Configured ones are told to who may use the whole server, and a token of a session sees those of that session.
    """
    configured = services.inventory if caller.reach == "server" else ()
    return await list_followers(services.sessions, project, configured, caller.session)


@post(
    "/sessions/{session:str}/events/ingest",
    operation_id="events.ingest",
    audited=False,
    tags=["events"],
    status_code=200,
    role="operator",
    for_session=True,
    request_headers=[
        {
            "name": "Event-Sequence",
            "in": "header",
            "description": "Number of the first event; those that say no `seq` are numbered from here.",
            "schema": {"type": "integer", "minimum": 1},
        }
    ],
    body={JSON: "IngestedEvents", NDJSON: "IngestedEvent"},
)
async def ingest_events(
    session: str, services: Services, project: str, request: Request[Any, Any, Any]
) -> IngestReceipt:
    """Add what a leader reports of its followers to the log: an array of events, or one on each line.

    Each `seq` of an origin is taken once, whatever is sent again; all of a request is taken, or nothing of it.
    """
    live = await services.sessions.registry.live(project, session)
    body, path = await _body(request)
    events = read_events(
        [respelled(each, IngestedEvent) for each in body] if isinstance(body, list) else body,
        first_seq(request),
        path,
    )
    return await services.ingest.take(live, lambda: events)


def first_seq(request: Request[Any, Any, Any]) -> int | None:
    """What the header Event-Sequence says."""
    given = request.headers.get("event-sequence", "").strip()
    if not given:
        return None
    if not given.isascii() or not given.isdecimal() or not 1 <= int(given[:20]) <= _LARGEST:
        reason = f"'{given[:50]}' is no number of an event; they begin with 1"
        raise InvalidRequest(reason=f"Event-Sequence: {reason}.", errors={"Event-Sequence": [reason]})
    return int(given)


async def _body(request: Request[Any, Any, Any]) -> tuple[Any, Any]:
    """The body, and how its n-th event is called."""
    media = request.content_type[0].lower()
    if media in {NDJSON, "application/jsonl", "application/ndjson"}:
        return _lines(await request.body()), lambda index: f"line {index + 1}"
    if media and media != "application/json":
        raise UnsupportedMedia(given=media, possible=f"application/json or {NDJSON}")
    return await request.json(), lambda index: f"[{index}]"


def _lines(body: bytes) -> list[Any]:
    found = []
    for number, line in enumerate(filter(None, map(bytes.strip, body.split(b"\n"))), 1):
        try:
            found.append(msgspec.json.decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise refused({f"line {number}": [f"is not valid JSON ({error})"]}) from None
    return found


HANDLERS = (followers, ingest_events)
