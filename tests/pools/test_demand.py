"""How many runners a pool should have, and which settings it may have."""

import json

import pytest

from ostler.base.errors import SettingsError
from ostler.base.setting_groups.tables import PoolSetting
from ostler.base.settings import load_settings
from ostler.server.pools.demand import Load, can_spare_one, could_have, missing
from ostler.wire.runners import Needs


@pytest.mark.parametrize(
    ("pool", "load", "makes", "spares"),
    [
        ({}, Load(0, 0), 0, False),
        ({}, Load(3, 0), 3, False),
        ({}, Load(3, 2), 1, False),
        ({}, Load(0, 1), 0, True),
        ({"slots": 4}, Load(5, 0), 2, False),
        ({"slots": 4}, Load(5, 4), 1, False),
        ({"slots": 4}, Load(0, 3), 0, False),
        ({"warm": 1}, Load(0, 0), 1, False),
        ({"warm": 1}, Load(0, 1), 0, False),
        ({"warm": 1}, Load(1, 1), 1, False),
        ({"warm": 1}, Load(0, 2), 0, True),
        ({"warm": 2, "slots": 4}, Load(0, 7), 1, False),
    ],
)
def test_a_pool_has_room_for_all_that_wait_and_some_ahead(
    pool: dict[str, int], load: Load, makes: int, spares: bool
) -> None:
    setting = PoolSetting(image="i", **pool)  # type: ignore[arg-type]
    assert (missing(setting, load), can_spare_one(setting, load)) == (makes, spares)


def test_a_session_is_for_a_pool_with_all_its_labels_unless_it_names_a_host() -> None:
    pool = PoolSetting(image="i", labels={"gpu": "yes", "zone": "a"})
    assert could_have(pool, Needs(labels={"gpu": "yes"}))
    assert could_have(pool, Needs())
    assert not could_have(pool, Needs(labels={"gpu": "no"}))
    assert not could_have(pool, Needs(host="builder"))
    theirs = PoolSetting(image="i", labels={"tenant": "acme"})
    assert [could_have(theirs, Needs(), tenant) for tenant in ("acme", "other", None)] == [True, False, False]


@pytest.mark.parametrize(
    ("pools", "says"),
    [
        ({"Small": {"image": "i"}}, "pools=Small: use a-z 0-9 and -"),
        ({"small": {}}, "missing required field `image`"),
        ({"small": {"image": "i", "slots": 0}}, "Expected `int` >= 1"),
        ({"small": {"image": "i", "sorts": 1}}, "unknown field `sorts`"),
        ({"small": {"image": "--privileged"}}, "pools.small.image=--privileged: is no name of an image."),
        ({"small": {"image": "i", "warm": 5}}, "pools.small.warm=5: must not be more than max_runners, which is 4."),
        ({"small": {"image": "i", "volumes": ["src"]}}, "pools.small.volumes=src: must be the absolute path"),
        ({"small": {"image": "i", "servers": ["here"]}}, "pools.small.servers=here: must be where runners reach"),
    ],
)
def test_a_pool_that_could_have_no_runner_is_refused(pools: object, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(flags={"pools": json.dumps(pools)}, environ={"HOME": "/nowhere"})
    assert says in str(refused.value)
