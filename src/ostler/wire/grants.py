"""On whose behalf something is started on a runner, and within what: made by a server, carried in its orders."""

import msgspec

from ostler.wire.events import PermissionMode
from ostler.wire.workspaces import Runtime


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a start may have; nothing of it is looked up again on the way to the runner."""

    tenant: str = "default"
    project: str = "default"
    actor: str | None = None
    """Who asked for it; None for what a server or a runner starts by itself."""
    runtime: Runtime = Runtime()
    """What it runs in, with its limits."""
    egress: tuple[str, ...] = ()
    """What may leave the runtime beside what it lets out anyway."""
    secrets: tuple[str, ...] = ()
    """References of secrets, never their values."""
    permission_mode: PermissionMode = "default"
    """What the agent may do without asking."""
