"""Sessions on runners that a server made: they outlive their machine, and no machine stays for those that sleep."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pools.hosting import Api, Podman, installed_podman, pool, pool_server
from tests.pools.test_pools import HOLD
from tests.support.patience import wait_until

pytestmark = [pytest.mark.root, pytest.mark.timeout(900)]
NOT_STARTING = """case "$1" in start) echo no disk >&2; exit 125;; esac
exec "$(dirname "$0")/podman-aside" "$@\""""


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with installed_podman() as made:
        yield made


@pytest.fixture
def engine(podman: Podman) -> Iterator[Podman]:
    """One without containers; those of a server stay when it stops."""
    yield podman
    podman.call("rm", "--force", "--all", "--time", "0")


def moved(api: Api, task: str) -> dict[str, Any]:
    """How a session came to where it is."""

    def found() -> list[dict[str, Any]]:
        events = api.get(f"/sessions/{task}/events", limit=10_000)["events"]
        return [event["data"] for event in events if event["type"] == "session.moved"]

    wait_until(lambda: bool(found()), what="it moved", seconds=120)
    return found()[0]


def test_a_session_whose_machine_is_gone_goes_on_on_another_at_once(engine: Podman, tmp_path: Path) -> None:
    with pool_server(tmp_path / "state", engine, "--replace-after-seconds", "600", small=pool()) as server:
        api = Api(server)
        task = api.order(HOLD, keepOpen=True)
        api.until(task, "running")
        (name,) = api.until_managed(1)
        engine.call("rm", "--force", "--time", "0", f"ostler-{name}")
        data = moved(api, task)
        assert (data["from_runner"], data["reason"]) == (name, f"the runner '{name}' is gone with its machine")
        assert name not in api.managed()
        assert api.task(task)["runner"]["name"] == data["to_runner"]
        api.delete(f"/sessions/{task}")


def test_no_other_machine_is_made_for_one_that_is_stopped(engine: Podman, tmp_path: Path) -> None:
    with pool_server(tmp_path / "state", engine, "--replace-after-seconds", "3", small=pool()) as server:
        api = Api(server)
        task = api.order(HOLD, keepOpen=True)
        api.until(task, "running")
        (name,) = api.until_managed(1)
        with engine.broken(NOT_STARTING):
            engine.call("kill", f"ostler-{name}")
            api.until_told(task, f"'{name}' of the pool 'small' is stopped and could not be started .*no disk")
            assert (api.task(task)["status"], engine.hosts()) == ("queued", [f"ostler-{name}"])
            assert api.managed()[name]["managed"]["state"] == "stopped"
        assert moved(api, task)["to_runner"] == name
        api.delete(f"/sessions/{task}")


def test_sessions_that_sleep_move_together_and_the_other_machine_goes(engine: Podman, tmp_path: Path) -> None:
    args = ("--idle-timeout-seconds", "1")
    with pool_server(tmp_path / "state", engine, *args, small=pool(slots=2, idle_seconds=1)) as server:
        api = Api(server)
        tasks = [api.order(HOLD, keepOpen=True) for _ in range(3)]
        for task in tasks:
            api.until(task, "running")
        assert len(engine.hosts()) == 2
        names = {api.task(task)["runner"]["name"]: task for task in tasks}
        asleep = set(names.values())
        for task in tasks:
            api.post(f"/sessions/{task}/interrupt")
        for task in set(tasks) - asleep:
            api.post(f"/sessions/{task}/cancel")
        wait_until(lambda: len(engine.hosts()) == 1, what="one machine is left", seconds=120)
        left = {api.task(task)["runner"]["name"] for task in asleep}
        assert len(left) == 1
        assert engine.hosts() == [f"ostler-{name}" for name in left]
        assert {api.task(task)["status"] for task in asleep} == {"running"}
        for task in asleep:
            api.delete(f"/sessions/{task}")
