"""How the agent of a session works: as the session was created, and as it was changed since."""

from typing import Any

import msgspec

from ostler.server.sessions.log.state import SessionState
from ostler.server.store.records import SessionRecord, SessionSpec
from ostler.wire.events import PermissionMode, PermissionRule
from ostler.wire.providers import McpServer, Provider


class SessionChange(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent should work from the next turn on; None leaves it as it is."""

    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    permission_mode: PermissionMode | None = None
    permission_rules: tuple[PermissionRule, ...] | None = None
    tools: tuple[str, ...] | None = None
    provider: Provider | None = None
    mcp_servers: dict[str, McpServer] | None = None


def settings_now(record: SessionRecord, state: SessionState) -> SessionSpec:
    """What holds now; an approved plan or a later message may have changed what the agent may do."""
    return msgspec.structs.replace(record.spec, permission_mode=state.permission_mode or record.spec.permission_mode)


def settings_shown(record: SessionRecord, state: SessionState) -> SessionSpec:
    """What holds now, and what the agent itself says of how it works."""
    now = settings_now(record, state)
    return msgspec.structs.replace(
        now, model=state.model or now.model, variant=state.variant or now.variant, mode=state.mode or now.mode
    )


def changes(record: SessionRecord, state: SessionState, wanted: SessionChange) -> dict[str, Any]:
    """What of a change is not so already."""
    now = settings_now(record, state)
    named = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    return {
        name: value for name, value in named.items() if value != getattr(now, name) or _has_left(name, value, state)
    }


def _has_left(name: str, value: object, state: SessionState) -> bool:
    """Whether the agent has left the mode it was started in, as after an approved plan."""
    return name == "mode" and state.mode is not None and state.mode != value
