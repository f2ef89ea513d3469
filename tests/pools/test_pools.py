"""Runners that a server makes itself, in containers of a real podman: when, how many, and what becomes of them."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pools.hosting import Api, Podman, installed_podman, pool, pool_server
from tests.support.certificates import Authority
from tests.support.patience import wait_until
from tests.support.real_engine import BARE

pytestmark = [pytest.mark.root, pytest.mark.timeout(900)]
HOLD = "mock: wait 600"
"""A task that stays at work."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Podman]:
    with installed_podman() as made:
        yield made


@pytest.fixture(scope="module")
def api(engine: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    state = tmp_path_factory.mktemp("pools") / "state"
    with pool_server(
        state, engine, small=pool(idle_seconds=1), never=pool(image="localhost/no:1", labels={"no": "1"})
    ) as server:
        yield Api(server)


def _gone(engine: Podman) -> None:
    wait_until(lambda: engine.hosts() == [], what="no host is left", seconds=120)


def test_a_task_that_waits_gets_a_runner_which_goes_when_it_has_nothing_to_do(api: Api, engine: Podman) -> None:
    task = api.order(HOLD)
    ((name, runner),) = api.until_managed(1).items()
    assert (runner["managed"], runner["slots"], runner["labels"]) == (
        {"pool": "small", "state": "running"},
        1,
        {"made": "yes"},
    )
    (host,) = engine.hosts()
    assert host == f"ostler-{name}"
    assert "rtk_" not in engine.call("inspect", host)
    api.until(task, "running")
    assert api.task(task)["runner"]["name"] == name
    assert "waiting for a runner: one is being made in the pool 'small'" in api.lines(task)
    api.post(f"/sessions/{task}/cancel")
    _gone(engine)
    wait_until(lambda: api.managed() == {}, what="its runner is gone")


def test_a_pool_has_no_more_runners_than_it_may(api: Api, engine: Podman) -> None:
    tasks = [api.order(HOLD) for _ in range(3)]
    api.until_told(tasks[2], r"the pool 'small' has as many as it may have \(2\)")
    for task in tasks[:2]:
        api.until(task, "running")
    assert len(engine.hosts()) == 2
    api.post(f"/sessions/{tasks[0]}/cancel")
    api.until(tasks[2], "running")
    assert len(engine.hosts()) == 2
    for task in tasks[1:]:
        api.post(f"/sessions/{task}/cancel")
    _gone(engine)


def test_a_host_that_stopped_is_started_again_and_one_that_is_gone_is_replaced(api: Api, engine: Podman) -> None:
    first = api.order(HOLD)
    api.until(first, "running")
    ((name, runner),) = api.until_managed(1).items()
    engine.call("kill", f"ostler-{name}")
    wait_until(lambda: any("was lost" in line for line in api.lines(first)), what="the link is lost", seconds=120)
    wait_until(lambda: any("is back" in line for line in api.lines(first)), what="its runner is back", seconds=120)
    assert (list(api.managed()), api.managed()[name]["id"]) == ([name], runner["id"])
    engine.call("rm", "--force", "--time", "0", f"ostler-{name}")
    wait_until(lambda: name not in api.managed(), what="its runner is known no more", seconds=120)
    second = api.order(HOLD)
    api.until(second, "running")
    assert api.task(second)["runner"]["name"] != name
    for task in (first, second):
        api.delete(f"/sessions/{task}")
    _gone(engine)


def test_nothing_is_made_or_given_up_while_podman_does_not_answer(api: Api, engine: Podman) -> None:
    first = api.order(HOLD)
    api.until(first, "running")
    (name,) = api.until_managed(1)
    with engine.broken("echo out of order >&2; exit 125"):
        wait_until(lambda: api.managed()[name]["managed"]["state"] == "unreachable", what="it is shown")
        second = api.order(HOLD)
        api.until_told(second, "the pool 'small' cannot be reached .*out of order")
        assert api.task(first)["status"] == "running"
    api.until(second, "running")
    assert api.managed()[name]["managed"]["state"] == "running"
    assert len(engine.hosts()) == 2
    for task in (first, second):
        api.post(f"/sessions/{task}/cancel")
    _gone(engine)


def test_a_pool_that_cannot_make_a_runner_says_why(api: Api, engine: Podman) -> None:
    task = api.order(runtime={"type": "local", "labels": {"no": "1"}})
    api.until_told(task, "the pool 'never' could not make one .*localhost/no:1")
    assert engine.hosts() == []
    api.post(f"/sessions/{task}/cancel")


def test_a_runner_that_is_kept_warm_is_used_at_once_and_removed_with_its_pool(engine: Podman, tmp_path: Path) -> None:
    with pool_server(tmp_path / "state", engine, small=pool(warm=1)) as server:
        api = Api(server)
        (warm,) = api.until_managed(1)
        task = api.order()
        api.until(task, "completed")
        assert api.task(task)["runner"]["name"] == warm
        assert not any("being made" in line for line in api.lines(task))
        api.delete(f"/runners/{warm}")
        wait_until(lambda: f"ostler-{warm}" not in engine.hosts(), what="its host is removed", seconds=120)
        assert api.until_managed(1).keys() != {warm}
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
    assert len(engine.hosts()) == 1
    with pool_server(tmp_path / "state", engine) as server:
        _gone(engine)
        wait_until(lambda: Api(server).managed() == {}, what="nor its runner")


@pytest.mark.parametrize("failpoint", ["provision.before:kill", "provision.after:kill"])
def test_a_server_that_is_killed_while_it_makes_a_runner_leaves_nothing(
    engine: Podman, tmp_path: Path, failpoint: str
) -> None:
    with pool_server(tmp_path / "state", engine, failpoint=failpoint, small=pool(max_runners=1)) as server:
        task = Api(server).order()
        assert server.process.wait(120) == -signal.SIGKILL
    port = ("--port", str(server.port))  # where a runner that was half made finds it
    with pool_server(tmp_path / "state", engine, *port, small=pool(max_runners=1, idle_seconds=1)) as server:
        Api(server).until(task, "completed")
        _gone(engine)


def test_what_nobody_knows_is_removed_and_what_others_made_is_not(engine: Podman, tmp_path: Path) -> None:
    with pool_server(tmp_path / "state", engine, small=pool()) as server:
        local = Api(server).post("/runners/tokens")  # the server answers
        assert local["token"]
        (home,) = (tmp_path / "state" / "runner.id").read_text().split()
        for name, owner in (("ostler-stray", home), ("ostler-other", "run_other")):
            engine.call(
                "create",
                "--name",
                name,
                "--label",
                f"ostler.host={name[7:]}",
                "--label",
                f"ostler.server={owner}",
                BARE,
                "x",
            )
        wait_until(lambda: engine.hosts() == ["ostler-other"], what="the stray is removed", seconds=120)
    engine.call("rm", "ostler-other")


def test_runners_of_a_pool_trust_the_authority_of_the_server(engine: Podman, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served = authority.pair("server", ["127.0.0.1"]).served
    with pool_server(tmp_path / "state", engine, *served, *authority.trusted, small=pool()) as server:
        api = Api(server, authority.file)
        task = api.order()
        api.until(task, "completed")
        (name,) = api.until_managed(1)
        api.delete(f"/runners/{name}")
        _gone(engine)
    unread = pool(ca_file=str(tmp_path / "none.pem"))
    with pool_server(tmp_path / "state", engine, *served, *authority.trusted, small=unread) as server:
        api = Api(server, authority.file)
        api.until_told(api.order(), r"none\.pem cannot be read \(No such file or directory\)")
    assert "Traceback" not in server.stderr.read_text()
