"""The ways between a leader and its followers: keys of overlays, handshakes, the relay, and the register protocol."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ostler.wire.fleets import HostName, Line, Tag, Word
from ostler.wire.struct import Answer, Body

MOST_TARGETS = 16
LONGEST_HANDSHAKE = 120.0
LONGEST_TOKEN = 30 * 86400.0
Target = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.\[\]:-]{1,253}:[0-9]{1,5}$")]
TargetName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
RunName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Overlay = Literal["netbird", "tailscale"]


class AskKeys(Body, frozen=True, kw_only=True):
    """Which overlay networks a leader or follower could join."""

    providers: Annotated[tuple[Overlay | Literal["none"], ...], Meta(max_length=3)]
    tags: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...], Meta(max_length=16)] = ()
    """Groups (NetBird) or tags (Tailscale) of whoever joins."""


class OverlayCredentials(Answer, frozen=True, kw_only=True):
    """What to join with: `setupKey` and `autoGroups` of NetBird, `authKey` and `aclTags` of Tailscale."""

    ephemeral: bool
    setup_key: str | None = None
    reusable: bool | None = None
    auto_groups: tuple[str, ...] | None = None
    auth_key: str | None = None
    acl_tags: tuple[str, ...] | None = None


class OverlayKeys(Answer, frozen=True, kw_only=True):
    """The first of the wanted overlays that this server has an account of; `none` if it has none of them."""

    provider: Overlay | Literal["none"]
    credentials: OverlayCredentials | None = None


class Handshake(Body, frozen=True, kw_only=True):
    """Which followers should say that they can be reached."""

    session_id: str
    hosts: Annotated[tuple[HostName, ...], Meta(min_length=1, max_length=256)]
    timeout_sec: Annotated[float, Meta(ge=0, le=LONGEST_HANDSHAKE)] = 30.0


Reached = Literal["ok", "fail", "skip"]


class HostReached(Answer, frozen=True, kw_only=True):
    """By which ways a follower says that it can be reached; one that said nothing fails."""

    overlay: Reached
    relay: Reached
    ssh: Literal["ok", "fail"]


class HandshakeStatus(Answer, frozen=True, kw_only=True):
    """What is known when all have answered, or when the time is over."""

    statuses: dict[str, HostReached]


class HandshakeAck(Body, frozen=True, kw_only=True):
    """What a follower says of itself; what is absent it did not try."""

    session_id: str
    host: HostName
    overlay_ready: bool | None = None
    relay_ready: bool | None = None
    ssh_ok: bool | None = None


class RunOrder(Body, frozen=True, kw_only=True, tag_field="type", tag="run"):
    """Run a command; a run that the follower knows already is not begun again."""

    run: RunName
    command: Annotated[tuple[str, ...], Meta(min_length=1, max_length=1000)]
    env: dict[str, str] = msgspec.field(default_factory=dict)


class SignalOrder(Body, frozen=True, kw_only=True, tag_field="type", tag="signal"):
    """Send a signal to all that a run started."""

    run: RunName
    signal: Literal["INT", "TERM", "KILL"] = "TERM"


class CloseOrder(Body, frozen=True, kw_only=True, tag_field="type", tag="close"):
    """End what runs, and leave."""


class SyncOrder(Body, frozen=True, kw_only=True, tag_field="type", tag="sync"):
    """Make the copy equal to the archive (tar) that comes as input; it ends like a run."""

    run: RunName


ControlOrder = RunOrder | SyncOrder | SignalOrder | CloseOrder
"""What a leader sends to a follower by the relay."""


class OrderTaken(Answer, frozen=True, kw_only=True):
    """The follower has it."""

    delivered: bool


class RunStatus(Body, frozen=True, kw_only=True):
    """How a follower, or a run on it, stands."""

    state: Literal["joined", "started", "exited", "left"]
    run: RunName | None = None
    code: Annotated[int, Meta(ge=-(2**31), le=2**32)] | None = None
    """Of a run that exited."""
    os: Word | None = None
    """Of one that joins."""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=64)] = ()
    folder: Line | None = None
    """Of one that joins: where its copy of the files is, if a fence may write there."""
    ssh_user: Word | None = None


class AskToken(Body, frozen=True, kw_only=True):
    """A token for the fleet of a session."""

    session_id: str
    seconds: Annotated[float, Meta(ge=1, le=LONGEST_TOKEN)] = 86400.0
    """How long it is good for."""


class SessionToken(Answer, frozen=True, kw_only=True):
    """What opens the fleet of one session and nothing else: followers, relay, proxy, and the session's own log."""

    session_id: str
    token: str
    expires_at: str


class SocksAccess(Answer, frozen=True, kw_only=True):
    """Where the SOCKS5 proxy of a session is, and what opens it; it reaches peers of this session only."""

    host: str
    port: int
    username: str
    password: str
    expires_at: str
    names: tuple[str, ...]
    """What can be reached now, such as `follower-01:22`."""


class Register(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of a peer: which of its addresses others may reach, by name."""

    targets: Annotated[dict[TargetName, Target], Meta(min_length=1, max_length=MOST_TARGETS)]
    instance: Annotated[str, Meta(max_length=64)] | None = None
    """The same whenever this peer connects: nobody else takes the place that it has."""
