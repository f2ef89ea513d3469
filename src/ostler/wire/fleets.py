"""Fleets: what a leader tells of its followers, as it sends it, as the log has it, and what is known of them."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from ostler.wire.struct import Answer, Body, Wire

LEADER = "leader"
"""Who reports an event that names nobody."""
MOST_HOSTS = 256
"""Followers of one session that are remembered."""
MOST_ORIGINS = MOST_HOSTS + 64
"""Who may report events of one session."""
LONGEST_MESSAGE = 1_000_000
_LARGEST_SEQ = 2**53

HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Tag = Annotated[str, Meta(min_length=1, max_length=128)]
Origin = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
SnapshotName = Annotated[str, Meta(min_length=1, max_length=200)]
Message = Annotated[str, Meta(max_length=LONGEST_MESSAGE)]
Line = Annotated[str, Meta(max_length=4000)]
Hosts = Annotated[tuple[HostName, ...], Meta(max_length=MOST_HOSTS)]
Sequence = Annotated[int, Meta(ge=1, le=_LARGEST_SEQ)]
Milliseconds = Annotated[int, Meta(ge=0, le=_LARGEST_SEQ)]
ExitCode = Annotated[int, Meta(ge=-(2**31), le=2**32)]
Stream = Literal["stdout", "stderr"]


class ReportedHost(Body, frozen=True, kw_only=True):
    """A follower as its leader tells of it."""

    name: HostName
    os: Word
    tags: Annotated[tuple[Tag, ...], Meta(max_length=64)] = ()
    folder: Line | None = None
    """Where its copy of the files is; absent if it has none that a fence may write."""
    ssh_user: Word | None = None


class ReportedFence(Body, frozen=True, kw_only=True):
    """What became of one follower in a fence; `consistent` if it is as the snapshot."""

    state: Word
    took_ms: Milliseconds | None = None
    message: Line | None = None


class _Report(Body, frozen=True, kw_only=True, tag_field="type"):
    """What every reported event may say."""

    ts: Annotated[datetime, Meta(tz=True)] | None = None
    """When it happened, in RFC 3339 with a zone; absent if that is now."""
    seq: Sequence | None = None
    """Its number among the events of its origin: 1, 2, 3 ... What was taken already is left out."""
    origin: Origin = LEADER
    """Who reports it."""


class ReportFollowers(_Report, frozen=True, kw_only=True, tag="followersCatalog"):
    """The followers of the session; those that are not named are followers no longer."""

    hosts: Annotated[tuple[ReportedHost, ...], Meta(max_length=MOST_HOSTS)]


class ReportFenceStarted(_Report, frozen=True, kw_only=True, tag="fenceStarted"):
    """The leader begins to make every follower equal to a snapshot."""

    snapshot_id: SnapshotName
    transport: Word | None = None


class ReportFenceResult(_Report, frozen=True, kw_only=True, tag="fenceResult"):
    """What became of a fence."""

    snapshot_id: SnapshotName
    hosts: Annotated[dict[HostName, ReportedFence], Meta(max_length=MOST_HOSTS)]


class ReportHostStarted(_Report, frozen=True, kw_only=True, tag="hostStarted"):
    """A command begins on a follower."""

    host: HostName
    run: Word | None = None
    """Which one, of the leader's own choice."""


class ReportHostLog(_Report, frozen=True, kw_only=True, tag="hostLog"):
    """A follower's command printed something."""

    host: HostName
    stream: Stream
    message: Message
    run: Word | None = None


class ReportHostExited(_Report, frozen=True, kw_only=True, tag="hostExited"):
    """A follower's command ended; a code below 0 means that nobody knows how."""

    host: HostName
    code: ExitCode
    run: Word | None = None


class ReportSummary(_Report, frozen=True, kw_only=True, tag="summary"):
    """How a run on all followers ended."""

    passed: Hosts
    failed: Hosts


class ReportNote(_Report, frozen=True, kw_only=True, tag="note"):
    """A remark."""

    message: Message


IngestedEvent = (
    ReportFollowers
    | ReportFenceStarted
    | ReportFenceResult
    | ReportHostStarted
    | ReportHostLog
    | ReportHostExited
    | ReportSummary
    | ReportNote
)
"""One event that a leader reports."""
INGESTED_TYPES = tuple(str(kind.__struct_config__.tag) for kind in get_args(IngestedEvent))


class Gap(Answer, frozen=True, kw_only=True):
    """Numbers of an origin that were passed over; they are taken when they come after all."""

    origin: str
    first: int
    last: int


class IngestReceipt(Answer, frozen=True, kw_only=True):
    """What was taken; it is durable and in the stream of the session."""

    accepted: int
    duplicates: int
    """Left out, since an event with this number of this origin was taken before."""
    gaps: tuple[Gap, ...]
    """Everything that is missing, of the origins in this request."""
    last_seq: dict[str, int]
    """The highest number taken of each origin in this request that numbers its events."""
    last_sequence: int
    """The number of the session's newest event."""


class ReportedData(Wire, frozen=True, kw_only=True):
    """Who reported it, and as the how manieth."""

    origin: str = LEADER
    seq: int | None = None


class FleetHost(Wire, frozen=True, kw_only=True):
    """A follower."""

    name: str
    os: str
    tags: tuple[str, ...] = ()
    folder: str | None = None
    ssh_user: str | None = None


class FleetCatalogData(ReportedData, frozen=True, kw_only=True):
    """The followers of the session."""

    hosts: tuple[FleetHost, ...]


class FenceStartedData(ReportedData, frozen=True, kw_only=True):
    """The leader begins to make every follower equal to a snapshot."""

    snapshot_id: str
    transport: str | None = None


class FencedHost(Wire, frozen=True, kw_only=True):
    """What became of one follower in a fence."""

    state: str
    took_ms: int | None = None
    message: str | None = None


class FenceResultData(ReportedData, frozen=True, kw_only=True):
    """What became of a fence."""

    snapshot_id: str
    hosts: dict[str, FencedHost]


class HostStartedData(ReportedData, frozen=True, kw_only=True):
    """A command begins on a follower."""

    host: str
    run: str | None = None
    """Which one, of the leader's own choice."""


class HostLogData(ReportedData, frozen=True, kw_only=True):
    """A follower's command printed something."""

    host: str
    stream: Stream
    message: str
    run: str | None = None


class HostExitedData(ReportedData, frozen=True, kw_only=True):
    """A follower's command ended; a code below 0 means that nobody knows how."""

    host: str
    code: int
    run: str | None = None


class FleetSummaryData(ReportedData, frozen=True, kw_only=True):
    """How a run on all followers ended."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]


class FleetNoteData(ReportedData, frozen=True, kw_only=True):
    """A remark."""

    message: str


HostState = Literal["known", "running", "passed", "failed"]
"""Nothing ran there yet; a command runs; how the last one ended."""


class FollowerSession(Answer, frozen=True, kw_only=True):
    """What a follower does in one session."""

    session_id: str
    title: str | None = None
    state: HostState
    exit_code: int | None = None
    fence: str | None = None
    """What became of it in the last fence."""
    fence_ms: int | None = None
    snapshot_id: str | None = None
    """The snapshot of that fence."""
    last_seen: str | None = None
    folder: str | None = None
    """Where its copy of the files is; absent if it has none that a fence may write."""
    ssh_user: str | None = None


class Follower(Answer, frozen=True, kw_only=True):
    """A machine that holds a copy of the files of sessions."""

    name: str
    os: str
    tags: tuple[str, ...]
    last_seen: str | None = None
    """When something was heard of it last; absent for one that is only configured."""
    configured: bool = False
    """Whether an inventory of the server has it."""
    address: str | None = None
    """Where its inventory says that it is; the server itself never connects to it."""
    sessions: tuple[FollowerSession, ...] = ()


class FollowerList(Answer, frozen=True, kw_only=True):
    """Followers by name."""

    items: tuple[Follower, ...]


class InventoryHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A follower in an inventory."""

    name: HostName
    os: Word
    tags: tuple[Tag, ...] = ()
    address: str | None = None
    ssh_user: str | None = None


class Inventory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file with followers."""

    hosts: tuple[InventoryHost, ...]


def ingest_schema() -> dict[str, Any]:
    """The JSON Schema of what a leader may report: an array of events."""
    described = msgspec.json.schema(list[IngestedEvent])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Events of a leader",
        **described,
    }
