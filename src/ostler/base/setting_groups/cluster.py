"""Settings of servers with runners that dial in; part of the settings."""

from typing import Annotated, Literal

from msgspec import Meta

from ostler.base.setting_groups.session_rules import SessionSettings


class ClusterSettings(SessionSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of sessions whose runner is lost."""

    replace_after_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="Sessions of a runner that is not linked for this time go on on another one; 0 lets them wait.",
        ),
    ] = 120.0
    advertise_to_runners: Annotated[
        str | None,
        Meta(
            description="Where runners reach this server, such as https://a.example.com:2468. Every server names those "
            "of all to its runners, which go on there when it dies."
        ),
    ] = None
    keep_snapshots: Annotated[
        Literal["runners", "all", "none"],
        Meta(
            description="Whose files and memories are uploaded to the object store after each turn: of sessions on "
            "`runners` that dialled in, of `all`, or of `none`."
        ),
    ] = "runners"
    drain_deadline_seconds: Annotated[
        float,
        Meta(ge=0, description="How long a turn under way on a runner that drains may go on before it is interrupted."),
    ] = 600.0
