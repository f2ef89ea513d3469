"""What a server knows of the machines that run agents."""

from typing import Annotated, Literal

import msgspec

from ostler.wire.struct import Answer, Body
from ostler.wire.workspaces import SnapshotProvider


class Needs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a runner must be to have a session."""

    labels: dict[str, str] = {}
    """It has all of these."""
    host: str | None = None
    """It is the one of this id or name."""


class RunnerAbout(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner says of itself, and what its key fixes."""

    id: str
    name: str
    labels: dict[str, str] = {}
    slots: int | None = None
    """How many sessions may be at work there at a time; None for no limit."""
    boot: str = ""
    """Changes when the machine is started anew: nothing that ran before runs then."""
    version: str = ""
    os: str = ""
    arch: str = ""
    hostname: str = ""


class SessionRunner(Answer, frozen=True, kw_only=True):
    """The machine that a session is on."""

    id: str
    name: str


class Placement(Answer, frozen=True, kw_only=True):
    """Whether a session is on a runner."""

    state: Literal["placed", "queued", "lost", "none"]
    """`lost`: its runner cannot be reached, or was removed. `none`: it was over before it had a runner."""
    reason: str | None = None
    """What a queued one waits for, and what becomes of a lost one."""


class Managed(Answer, frozen=True, kw_only=True):
    """That a server made a runner itself."""

    pool: str
    state: Literal["running", "stopped", "unreachable"]
    """How its host is: `stopped` ones are started again, and nothing is known of `unreachable` ones."""


class RunnerInfo(Answer, frozen=True, kw_only=True):
    """A machine that runs agents."""

    id: str
    name: str
    hostname: str
    labels: dict[str, str]
    os: str
    arch: str
    version: str
    slots: int | None
    """How many sessions may be at work there at a time; null for no limit."""
    used: int
    health: Literal["ok", "lost"]
    """`lost` while there is no link to it; what runs there works on meanwhile."""
    last_beat: str | None
    """When it was heard last."""
    draining: bool
    """Whether no more sessions are placed there."""
    drain_until: str | None
    """When turns still under way on one that drains are interrupted."""
    leaving: int
    """How many sessions have still to leave one that drains, also those that sleep; counted up to a thousand."""
    server: str | None
    """The address of the server that it is linked to; null for none, and where there is only one server."""
    snapshot_capabilities: tuple[SnapshotProvider, ...]
    notes: dict[str, str] = msgspec.field(default_factory=dict)
    """Why a way to make workspaces does not work there."""
    managed: Managed | None = None
    """Which pool it is of, if the server made it."""


class RunnerList(Answer, frozen=True, kw_only=True):
    """All runners."""

    items: tuple[RunnerInfo, ...]


_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Labels = Annotated[dict[_Text, _Text], msgspec.Meta(max_length=64)]


class NewRunnerToken(Body, frozen=True, kw_only=True):
    """A token to be made, for runners to register with."""

    labels: Labels = msgspec.field(default_factory=dict)
    """What every runner that registers with it is labelled with, whatever it says itself."""
    uses: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = 1
    """How many runners may register with it; null for any number."""
    expires_in_seconds: Annotated[float, msgspec.Meta(gt=0, le=10 * 365 * 86400)] | None = 86400.0
    """How long it is good for; null for ever."""


class DrainRunner(Body, frozen=True, kw_only=True):
    """How a runner is to be emptied."""

    deadline_seconds: Annotated[float, msgspec.Meta(ge=0, le=7 * 86400)] | None = None
    """How long turns under way there may go on before they are interrupted; null for the server's own setting."""


class RunnerTokenIssued(Answer, frozen=True, kw_only=True):
    """A token that was made; only its hash is stored."""

    id: str
    token: str
    labels: dict[str, str]
    uses: int | None
    expires_at: str | None


class RegisterRunner(Body, frozen=True, kw_only=True):
    """A runner that wants to be known."""

    key_hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    """The SHA-256 of the key that it will dial in with, in hexadecimal."""
    name: _Text


class Registered(Answer, frozen=True, kw_only=True):
    """A runner that is known."""

    id: str
    name: str
    labels: dict[str, str]
    """Those that its token fixed."""
