"""Sessions of one agent that share a process, where the settings allow it."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk, said

STAND_IN = Path(__file__).parents[2] / "support" / "programs" / "opencode_server.py"
AGENTS = json.dumps({"opencode": {"command": [sys.executable, "-I", str(STAND_IN)]}})
SHARED = ("--shared-agent", "opencode")


@contextmanager
def serving(state_dir: Path, *args: str) -> Iterator[tuple[RunningServer, httpx.Client]]:
    with (
        running_server(state_dir, *args, env={"OSTLER_AGENTS": AGENTS}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield server, api


def talk_in(api: httpx.Client, folder: Path, **more: Any) -> Talk:
    folder.mkdir(exist_ok=True)
    return Talk(api, agent="opencode", cwd=str(folder), **more)


def who(talk: Talk) -> str:
    """The number of the process that answers, and its variable."""
    return said(talk.turn("who"))


def pid_of(talk: Talk) -> int:
    return int(who(talk).split()[0])


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def conversation(state_dir: Path, talk: Talk) -> list[str]:
    """What the agent has of a session."""
    (file,) = (state_dir / "shared").glob(f"*/home/conversations/{talk.get()['nativeSessionId']}")
    return file.read_text().splitlines()


def test_sessions_share_one_process_and_their_answers_do_not_cross(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir, *SHARED) as (_, api):
        one, two, beside = (talk_in(api, tmp_path / name) for name in ("one", "two", "one"))
        assert len({who(one), who(two), who(beside)}) == 1
        one.send("ask")
        asked = one.until_type("permission.requested")["data"]
        assert said(two.turn("say from two")) == "from two"
        assert said(beside.turn("say from beside")) == "from beside"
        assert one.post(f"/permissions/{asked['permission_id']}/reply", reply="once").status_code < 300
        assert one.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert said(one.events[-8:]) == "heard once"
        assert [talk.types().count("permission.requested") for talk in (one, two, beside)] == [1, 0, 0]
        assert {"agent.unparsed", "error"}.isdisjoint([*one.types(), *two.types(), *beside.types()])
        (agent,) = (each for each in api.get("/agents").json()["items"] if each["id"] == "opencode")
        assert (agent["capabilities"]["sharedProcess"], agent["coverage"]["sharedProcess"]) == (True, "converted")


@pytest.mark.parametrize("args", [SHARED, ()], ids=["shared", "alone"])
def test_a_pause_that_does_not_stop_a_shared_process_says_so(
    state_dir: Path, tmp_path: Path, args: tuple[str, ...]
) -> None:
    with serving(state_dir, *args) as (_, api):
        one = talk_in(api, tmp_path / "one")
        one.send("ask")
        asked = one.until_type("permission.requested")["data"]
        assert one.post("/pause").status_code < 300
        assert one.post("/resume").status_code < 300
        assert one.post(f"/permissions/{asked['permission_id']}/reply", reply="once").status_code < 300
        one.until_type("turn.ended")
        told = [each["data"]["message"] for each in one.events if each["data"].get("code") == "pause_is_shared"]
        assert ["Interrupt the turn" in each for each in told] == ([True] if args else [])


def test_only_sessions_that_would_start_the_same_share(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir, *SHARED) as (_, api):
        plain = pid_of(talk_in(api, tmp_path))
        assert who(talk_in(api, tmp_path, env={"WHO": "me"})).split()[1] == "me"
        others: list[dict[str, Any]] = [{"env": {"WHO": "me"}}, {"permissionMode": "bypass"}, {"instructions": "Ask."}]
        pids = [pid_of(talk_in(api, tmp_path, **other)) for other in others]
        assert len({plain, *pids}) == 4


def test_a_killed_process_is_told_to_each_and_each_goes_on(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir, *SHARED) as (_, api):
        talks = [talk_in(api, tmp_path / name) for name in ("one", "two")]
        pid = pid_of(talks[0])
        for talk in talks:
            talk.send("hold")
            talk.until_type("item.delta")
        os.kill(pid, signal.SIGKILL)
        for talk in talks:
            assert talk.until_type("turn.ended")["data"]["outcome"] == "failed"
        assert [said(talk.turn("recall")) for talk in talks] == ["3 prompts", "2 prompts"]
        new = {pid_of(talk) for talk in talks}
        assert len(new) == 1
        assert pid not in new


def test_a_session_that_ends_leaves_the_others_and_the_last_one_ends_the_process(
    state_dir: Path, tmp_path: Path
) -> None:
    with serving(state_dir, *SHARED) as (_, api):
        one, two = (talk_in(api, tmp_path / name) for name in ("one", "two"))
        pid = pid_of(one)
        one.send("hold")
        one.until_type("item.delta")
        two.turn("say hello")
        bridge = one.get()["process"]["pid"]
        os.kill(bridge, signal.SIGKILL)
        assert one.until_type("turn.ended")["data"]["outcome"] == "failed"
        wait_until(lambda: conversation(state_dir, one)[-1] == "abort", what="the turn was not aborted")
        assert said(two.turn("say still here")) == "still here"
        assert pid_of(one) == pid
        assert api.delete(f"/sessions/{one.id}").status_code == 204
        assert pid_of(two) == pid
        assert api.delete(f"/sessions/{two.id}").status_code == 204
        wait_until(lambda: not is_alive(pid), what="the process outlived its last session")
        wait_until(lambda: not list((state_dir / "shared").iterdir()), what="its home outlived its sessions")


def test_a_killed_server_leaves_nothing_or_goes_on_with_all(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir, *SHARED) as (server, api):
        one, two = (talk_in(api, tmp_path / name) for name in ("one", "two"))
        pid = pid_of(one)
        two.turn("say hello")
        one.send("ask")
        asked = one.until_type("permission.requested")["data"]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
    with serving(state_dir, *SHARED, "--orphan-timeout-seconds", "1") as (server, api):
        one.api = two.api = api
        assert one.post(f"/permissions/{asked['permission_id']}/reply", reply="once").status_code < 300
        assert one.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert pid_of(two) == pid
        assert api.post(f"/sessions/{one.id}/restart", json={}).status_code < 300
        assert said(one.turn("recall")) == "3 prompts"
        assert api.post(f"/sessions/{two.id}/restart", json={}).status_code < 300
        server.process.send_signal(signal.SIGKILL)
        server.process.wait(60)
        wait_until(lambda: not is_alive(pid), what="the process outlived its server")


def test_by_default_each_session_has_a_process_of_its_own(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir) as (_, api):
        assert len({pid_of(talk_in(api, tmp_path)) for _ in range(2)}) == 2
        (agent,) = (each for each in api.get("/agents").json()["items"] if each["id"] == "opencode")
        assert (agent["capabilities"]["sharedProcess"], agent["coverage"]["sharedProcess"]) == (False, "native")
    assert not (state_dir / "shared").exists()


def test_a_start_that_fails_says_what_the_process_printed(state_dir: Path, tmp_path: Path) -> None:
    with serving(state_dir, *SHARED) as (_, api):
        talk = talk_in(api, tmp_path, env={"REFUSE": "The configuration is not valid."})
        failed = talk.turn("who")
        assert "The configuration is not valid." in json.dumps(failed)


@pytest.mark.parametrize("name", ["pi", "nobody"])
def test_an_agent_that_cannot_share_is_refused_by_name(state_dir: Path, name: str) -> None:
    with (
        pytest.raises(AssertionError, match=f"shared_agents.*{name}.*opencode"),
        serving(state_dir, "--shared-agent", name),
    ):
        pass
