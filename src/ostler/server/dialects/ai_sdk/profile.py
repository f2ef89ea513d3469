"""What a client's version of the AI SDK understands beyond what all versions do."""

from collections.abc import Callable
from typing import Literal

import msgspec

Version = Literal["5", "6", "7"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How one client wants its stream."""

    version: Version = "5"
    is_open: Callable[[str], bool] = lambda ask_id: True
    """Whether a permission still waits, as far as this client can know; only asked by clients with approvals."""

    @property
    def has_approvals(self) -> bool:
        """Whether permissions are sent as approvals of tool calls."""
        return self.version != "5"

    @property
    def hears_responses(self) -> bool:
        """Whether it can be told how an approval was decided by somebody else."""
        return self.version == "7"


SAFE = Profile()
