"""A leader runs a command on its followers, which dial in, and the session has all that they say."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Ostler
from tests.support.forking import OSTLER
from tests.support.patience import stretched, wait_until
from tests.support.serving import RunningServer
from tests.support.stalling_proxy import Proxy
from tests.support.talk import Talk


@contextmanager
def follower(
    env: dict[str, str], session: str, name: str, folder: Path, log: Path, *options: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A machine that follows a session."""
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*OSTLER, "follower", session, "--name", name, "--folder", str(folder), *options],
            env=env,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: b"Following" in log.read_bytes(), f"{name} follows")
            yield process
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def two(server: RunningServer, env: dict[str, str], tmp_path: Path) -> Iterator[Talk]:
    """A session with two followers."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api, ExitStack() as stack:
        talk = Talk(api)
        for name in ("lin-01", "lin-02"):
            stack.enter_context(follower(env, talk.id, name, tmp_path / name, tmp_path / f"{name}.log"))
        yield talk


def test_a_command_runs_on_every_follower_and_the_summary_is_honest(two: Talk, ostler: Ostler, tmp_path: Path) -> None:
    (tmp_path / "lin-01" / "good").touch()
    listed = ostler("agent", "followers", "list")
    assert [name in listed.stdout for name in ("lin-01", "lin-02")] == [True, True]
    ran = ostler("agent", "run-everywhere", two.id, "--", "sh", "-c", "echo here; echo there >&2; test -e good")
    assert ran.returncode == 1
    assert "[lin-01] here" in ran.stdout
    assert "[lin-02] there" in ran.stderr
    events = two.get("/events")["events"]
    (summary,) = [event["data"] for event in events if event["type"] == "fleet.summary"]
    assert summary == {"passed": ["lin-01"], "failed": ["lin-02"]}
    exits = {event["data"]["host"]: event["data"]["code"] for event in events if event["type"] == "host.exited"}
    assert exits == {"lin-01": 0, "lin-02": 1}


def test_what_is_over_time_or_not_there_fails_with_its_reason(two: Talk, ostler: Ostler) -> None:
    ran = ostler("agent", "run-everywhere", two.id, "--host", "lin-01", "--timeout", "3", "--", "sh", "-c", "sleep 600")
    assert (ran.returncode, "killed" in ran.stdout) == (1, True)
    again = ostler("agent", "run-everywhere", two.id, "--host", "lin-01", "--", "true")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.lane("cli")
def test_a_command_writes_to_its_copy_alone_and_sees_no_home_of_the_follower(
    server: RunningServer, env: dict[str, str], ostler: Ostler, tmp_path: Path
) -> None:
    home = Path(env["HOME"])
    home.mkdir(exist_ok=True)
    (home / "id_ed25519").write_text("a key")
    look = f"touch mine; cat {home}/id_ed25519; touch {tmp_path}/away; test -w /etc || echo walls; "
    look += "echo ${OSTLER_TOKEN-none}"
    own = {**env, "OSTLER_TOKEN": "a token"}
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        with follower(own, talk.id, "lin-01", tmp_path / "copy", tmp_path / "log", "--jail"):
            ran = ostler("agent", "run-everywhere", talk.id, "--tag", "jail=bubblewrap", "--", "sh", "-c", look)
    printed = [line for line in ran.stdout.splitlines() if line.startswith("[lin-01]")]
    assert printed == ["[lin-01] walls", "[lin-01] none"], ran.stdout + ran.stderr
    assert ((tmp_path / "copy" / "mine").exists(), (tmp_path / "away").exists()) == (True, False)


@pytest.mark.lane("cli")
def test_a_follower_says_what_is_wrong_with_its_session_and_that_its_server_is_away(
    env: dict[str, str], ostler: Ostler, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    words = ["follower", "nobody", "--name", "lin-01", "--folder", str(folder)]
    found = ostler(*words)
    assert (found.returncode, "'nobody'" in found.stderr) == (1, True), found.stderr
    log = tmp_path / "log"
    with log.open("wb") as out:
        away = subprocess.Popen([*OSTLER, *words, "--endpoint", "http://127.0.0.1:9"], env=env, stderr=out, stdin=-3)
    wait_until(lambda: b"http://127.0.0.1:9 does not answer" in log.read_bytes(), "it says so")
    away.terminate()
    assert away.wait(30) == 0


@pytest.mark.lane("cli")
def test_where_no_jail_can_be_built_that_is_said(env: dict[str, str], ostler: Ostler, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    found = ostler("follower", "any", "--name", "lin-01", "--folder", str(empty), "--jail", PATH=str(empty))
    assert (found.returncode, "no `bwrap`" in found.stderr) == (1, True), found.stderr


@pytest.mark.lane("cli")
def test_a_name_stays_with_the_follower_that_has_it_and_another_one_is_told(
    two: Talk, env: dict[str, str], ostler: Ostler, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    with follower(env, two.id, "mac-01", tmp_path / "older", tmp_path / "older.log", "--no-jail") as older:
        refused = ostler("follower", two.id, "--name", "mac-01", "--folder", str(newer))
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
        assert "has the name 'mac-01'. Choose another one (--name)." in refused.stderr
        ran = ostler("agent", "run-everywhere", two.id, "--host", "mac-01", "--", "pwd")
        assert f"[mac-01] {tmp_path / 'older'}" in ran.stdout, ran.stdout + ran.stderr
        assert older.poll() is None
    with follower(env, two.id, "mac-01", newer, tmp_path / "newer.log", "--no-jail"):
        ran = ostler("agent", "run-everywhere", two.id, "--host", "mac-01", "--", "pwd")
        assert f"[mac-01] {newer}" in ran.stdout, ran.stdout + ran.stderr
    names = [each["name"] for each in two.api.get("/followers").json()["items"]]
    assert "mac-01" not in names


@pytest.mark.lane("cli")
def test_a_follower_that_was_cut_off_does_not_take_its_name_from_who_has_it_now(
    two: Talk, server: RunningServer, env: dict[str, str], tmp_path: Path
) -> None:
    with Proxy(server.port) as way, ExitStack() as stack:
        log = tmp_path / "older.log"
        far = {**env, "OSTLER_ENDPOINT": way.url}
        older = stack.enter_context(follower(far, two.id, "mac-01", tmp_path / "older", log, "--no-jail"))
        order = {"type": "run", "run": "run_1", "command": ["sh", "-c", "echo up; echo $$ > pid; sleep 600"]}
        two.api.post(f"/relay/{two.id}/mac-01/control", json=order).raise_for_status()
        two.until(lambda event: event["type"] == "host.log")
        way.refuse()
        wait_until(lambda: _listens(stack, two, "mac-01", "newer"), "the server knows that the name is free")
        way.accept()
        assert older.wait(stretched(60)) == 1
        assert "has the name 'mac-01'" in log.read_text()
        assert two.until_type("host.exited")["data"]["code"] == -1
        pid = int((tmp_path / "older" / "pid").read_text())
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "what it ran is ended")
        assert "mac-01" in [each["name"] for each in two.api.get("/followers").json()["items"]]


def _listens(stack: ExitStack, talk: Talk, name: str, instance: str) -> bool:
    """Whether a follower that calls itself so may listen by a name; then it does."""
    place = f"/relay/{talk.id}/{name}/control"
    stream = stack.enter_context(talk.api.stream("GET", place, params={"follower": instance}))
    return stream.is_success


def test_all_of_a_large_output_is_in_the_log_once(two: Talk, ostler: Ostler) -> None:
    ran = ostler("agent", "run-everywhere", two.id, "--host", "lin-02", "--", "seq", "1", "200000")
    assert ran.returncode == 0
    printed = [line.removeprefix("[lin-02] ") for line in ran.stdout.splitlines() if line.startswith("[lin-02]")]
    assert printed == [str(number) for number in range(1, 200_001)]


def test_input_of_a_command_that_has_ended_is_not_given_to_the_next_one(two: Talk) -> None:
    """An archive ends before its last bytes are read, and what was left of one made the next one unreadable."""
    relay = f"/relay/{two.id}/lin-01"
    two.api.post(f"{relay}/control", json={"type": "run", "run": "run_1", "command": ["true"]}).raise_for_status()
    two.until_type("host.exited")
    for content in (b"late", b""):
        two.api.post(f"{relay}/stdin", params={"run": "run_1"}, content=content).raise_for_status()
    two.api.post(f"{relay}/control", json={"type": "run", "run": "run_2", "command": ["cat"]}).raise_for_status()
    for content in (b"mine", b""):
        two.api.post(f"{relay}/stdin", params={"run": "run_2"}, content=content).raise_for_status()
    two.until_type("host.exited")
    assert [event["data"]["message"] for event in two.events if event["type"] == "host.log"] == ["mine"]


def test_input_that_comes_before_its_command_waits_for_it(two: Talk) -> None:
    """Orders and input come on two connections, and either may be the faster one."""
    relay = f"/relay/{two.id}/lin-01"
    two.api.post(f"{relay}/stdin", content=b"early").raise_for_status()
    order = {"type": "run", "run": "run_1", "command": ["cat"]}
    two.api.post(f"{relay}/control", json=order).raise_for_status()
    two.api.post(f"{relay}/stdin", content=b"").raise_for_status()
    printed = two.until(lambda event: event["type"] == "host.log")
    assert printed["data"]["message"] == "early"
    assert two.until_type("host.exited")["data"]["code"] == 0
