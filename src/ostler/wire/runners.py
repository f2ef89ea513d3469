"""What a server knows of the machines that run agents."""

import msgspec


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
