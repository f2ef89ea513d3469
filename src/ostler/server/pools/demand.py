"""How many runners a pool should have."""

import math
from typing import NamedTuple

from ostler.base.setting_groups.tables import PoolSetting
from ostler.server.runners.placement import fits
from ostler.wire.runners import Needs, RunnerAbout


class Load(NamedTuple):
    """What there is to do in a pool, and who can do it."""

    waiting: int
    """Sessions that wait and fit."""
    free: int
    """Slots that are free, or will be as soon as what is being made is linked."""


def could_have(pool: PoolSetting, needs: Needs, tenant: str | None = None) -> bool:
    """Whether a runner of the pool could have a session."""
    return needs.host is None and fits(RunnerAbout(id="", name="", labels=pool.labels), needs, tenant)


def missing(pool: PoolSetting, load: Load) -> int:
    """How many runners to make, if the pool may have so many."""
    return max(0, math.ceil((_wanted(pool, load) - load.free) / pool.slots))


def can_spare_one(pool: PoolSetting, load: Load) -> bool:
    """Whether a runner that has nothing to do may go."""
    return load.free - pool.slots >= _wanted(pool, load)


def _wanted(pool: PoolSetting, load: Load) -> int:
    return load.waiting + pool.warm * pool.slots
