"""What an agent's process may take."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how large they may be."""

    start_timeout: float
    turn_timeout: float
    """0 for no limit."""
    interrupt_grace: float
    stop_grace: float
    max_frame_bytes: int
    max_item_length: int = 8 * 2**20
    max_output: int = 0
    """Bytes that one process may say; 0 for no limit."""
    max_idle_output: int = 0
    """Bytes that one may have said when its turn is over; 0 for no limit."""
    patience: float = 0.0
    """How long an agent works on when its server is gone."""
    freeze_after: float = 0.0
    """How long until it stands still then, because another runner may get its session; 0 for never."""
