"""A session outlives its runner: it goes on on another one, and its log says what was lost."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.hosts import RunnerHost, kill_keepers, moved, next_turn, runners_of, started_runner, token_of
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.serving import RunningServer, running_server
from tests.support.stalling_proxy import Proxy
from tests.support.talk import Talk, said

SERVER = ("--local-slots", "0", "--runner-beat-seconds", "0.5", "--replace-after-seconds", "2")


class Hosts:
    """One server, and runners that come and go."""

    def __init__(self, server: RunningServer, folder: Path) -> None:
        self.server = server
        self.objects = folder / "server"
        self._folder = folder
        self._running: dict[str, tuple[RunnerHost, ExitStack]] = {}

    def start(self, name: str, *args: str, by: Proxy | None = None, prefix: Sequence[str] = ()) -> RunnerHost:
        state = self._folder / name
        token = token_of(self.server.url) if not (state / "runner.json").exists() else None
        stack = ExitStack()
        host = stack.enter_context(
            started_runner(
                state,
                "--server",
                by.url if by else self.server.url,
                "--name",
                name,
                *args,
                token=token,
                prefix=prefix,
            )
        )
        wait_until(lambda: runners_of(self.server.url).get(name, {}).get("health") == "ok", what=f"{name} is linked")
        self._running[name] = (host, stack)
        return host

    def lose(self, name: str) -> None:
        """End a host as a power cut would: the runner, its keepers and all that they have."""
        host, stack = self._running.pop(name)
        host.process.kill()
        host.process.wait()
        kill_keepers(host.state_dir)
        stack.close()

    def lose_all(self) -> None:
        """End those that still run."""
        for name in list(self._running):
            self.lose(name)


@pytest.fixture(scope="module")
def all_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("moves")
    with running_server(folder / "server", *SERVER) as server:
        yield Hosts(server, folder)


@pytest.fixture
def hosts(all_hosts: Hosts) -> Iterator[Hosts]:
    """The server, and no runners but those that a test starts."""
    yield all_hosts
    all_hosts.lose_all()


@pytest.fixture
def api(hosts: Hosts) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{hosts.server.url}/api/v1", timeout=120) as client:
        yield client


def kept(hosts: Hosts, session_id: str) -> list[str]:
    """The states of a session that were uploaded whole."""
    return sorted(found.parent.name for found in hosts.objects.glob(f"snapshots/{session_id}/*/manifest.json"))


def wait_kept(hosts: Hosts, session_id: str, turn: int) -> None:
    """Wait until the end of a turn is uploaded."""

    def turn_of(name: str) -> int | None:
        try:
            found = (hosts.objects / "snapshots" / session_id / name / "manifest.json").read_bytes()
        except FileNotFoundError:  # it is written last, and older ones are removed
            return None
        return int(json.loads(found)["turn"])

    def is_there() -> bool:
        return any(turn_of(name) == turn for name in kept(hosts, session_id))

    wait_until(is_there, what=f"turn {turn} is uploaded")


def test_a_session_goes_on_on_another_runner_with_the_memory_of_its_last_turn(hosts: Hosts, api: httpx.Client) -> None:
    hosts.start("a")
    talk = Talk(api)
    assert said(talk.turn("mock: say one")) == "one"
    wait_kept(hosts, talk.id, 1)
    talk.send("mock: stream 400 words 20/s")
    talk.until(lambda event: event["type"] == "item.delta")
    hosts.lose("a")
    ended = talk.until_type("turn.ended")["data"]
    assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "runner_lost")
    wait_until(lambda: talk.get()["placement"]["state"] == "queued", what="it waits")
    hosts.start("b")
    data = moved(talk)
    assert (data["from_runner"], data["to_runner"], data["turn"]) == ("a", "b", 1)
    assert data["lost"] == [
        "the files in its folder, which no snapshot has",
        "what the agent itself remembers since the end of turn 1",
    ]
    assert next_turn(talk, "mock: recall") == "I remember 2 user turns, this one included."
    assert talk.get()["runner"]["name"] == "b"


def test_files_and_memory_of_a_workspace_go_along(hosts: Hosts, api: httpx.Client, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "origin")
    hosts.start("c")
    talk = Talk(api, repo={"url": str(repository), "branch": "main"}, permissionMode="bypass")
    talk.until(lambda event: event["type"] == "session.status" and event["data"]["status"] == "running")
    for turn in (1, 2, 3):
        talk.turn(f"mock: write sub/turn{turn}.txt {turn}\nmock: recall")
        wait_kept(hosts, talk.id, turn)
    talk.turn("mock: run rm sub/turn2.txt && ln -s turn1.txt sub/link && chmod +x sub/turn3.txt")
    wait_kept(hosts, talk.id, 4)
    talk.send("mock: write lost.txt x\nmock: wait 60")
    talk.until_type("turn.started")
    hosts.lose("c")
    hosts.start("d")
    data = moved(talk)
    assert data["lost"] == [
        "what was done in the files since the end of turn 4",
        "files that git ignores, and what the agent did inside .git",
        "what the agent itself remembers since the end of turn 4",
    ]
    talk.until(lambda event: event["type"] == "session.status" and event["data"]["status"] == "running")
    assert next_turn(talk, "mock: recall\nmock: run ls -F sub; cat sub/link").startswith("I remember 5 user turns")
    found = {each["path"] for each in talk.get("/diff")["files"]}
    assert found == {"sub/turn1.txt", "sub/turn3.txt", "sub/link"}
    wait_kept(hosts, talk.id, 6)
    refused = talk.post("/rewind", turn=1)
    assert (refused.status_code, refused.json()["code"]) == (404, "turn_not_kept")
    assert api.delete(f"/sessions/{talk.id}").status_code == 204
    wait_until(lambda: not (hosts.objects / "snapshots" / talk.id).exists(), what="what was uploaded is removed")


def state_of(pid: int) -> str:
    """The letter of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_an_agent_that_is_cut_off_stands_still_before_others_take_its_session(hosts: Hosts, api: httpx.Client) -> None:
    with Proxy(hosts.server.port) as proxy:
        hosts.start("e", by=proxy)
        talk = Talk(api)
        talk.send("mock: stream 2000 words 20/s")
        talk.until(lambda event: event["type"] == "item.delta")
        pid = talk.get()["process"]["pid"]
        proxy.refuse()
        hosts.start("f")
        data = moved(talk)
        assert (data["from_runner"], data["to_runner"], state_of(pid)) == ("e", "f", "T")
        assert next_turn(talk, "mock: say here") == "here"
        proxy.accept()
        wait_until(lambda: runners_of(hosts.server.url)["e"]["health"] == "ok", what="the link is back")
        wait_until(lambda: state_of(pid) in {"", "Z"}, what="the agent that was left behind is ended")
        assert (talk.get()["runner"]["name"], talk.get()["status"]) == ("f", "running")


def test_a_runner_that_drains_is_emptied_between_turns_and_at_the_deadline(
    hosts: Hosts, api: httpx.Client, tmp_path: Path
) -> None:
    repository = make_repository(tmp_path / "origin")
    hosts.start("h")
    order = {"repo": {"url": str(repository), "branch": "main"}, "permissionMode": "bypass"}
    asleep, busy, patient = Talk(api, **order), Talk(api, **order), Talk(api)
    made = (
        "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m mine && git branch other && echo x > out.log"
    )
    asleep.send(f"mock: write kept.txt x\nmock: run {made}\nmock: recall")
    asleep.until_type("turn.ended")
    patient.send("mock: say before\nmock: wait 3\nmock: say after")
    busy.send("mock: write half.txt x\nmock: wait 600")
    busy.until(lambda event: event["type"] == "file.changed")
    hosts.start("i")
    answer = api.post("/runners/h/drain", json={"deadlineSeconds": 20})
    assert (answer.status_code, answer.json()["draining"]) == (200, True)
    for talk in (asleep, patient, busy):
        assert moved(talk)["to_runner"] == "i"
    assert said(patient.events) == "before\nafter"
    ended = [event["data"] for event in busy.events if event["type"] == "turn.ended"]
    assert [each["outcome"] for each in ended] == ["interrupted"]
    for talk in (asleep, busy):
        data = next(event["data"] for event in talk.events if event["type"] == "session.moved")
        assert data.get("lost", []) == []
    assert "kept.txt" in {each["path"] for each in asleep.get("/diff")["files"]}
    assert "half.txt" in {each["path"] for each in busy.get("/diff")["files"]}
    asleep.turn(
        "mock: run git log -1 --format=%s && git branch --list other && cat out.log && git fsck && git status -s"
    )
    printed = "".join(event["data"]["data"] for event in asleep.events if event["type"] == "terminal.output")
    assert printed.split()[-6:] == ["mine", "other", "x", "??", "kept.txt"], printed
    assert next_turn(asleep, "mock: recall") == "I remember 3 user turns, this one included."
    wait_until(lambda: runners_of(hosts.server.url)["h"]["used"] == 0, what="it is empty")
    assert not list((hosts.objects.parent / "h" / "workspaces" / "workspaces").glob("wsp_*"))


def test_a_session_of_a_runner_that_is_removed_goes_on_and_one_in_a_folder_waits(
    hosts: Hosts, api: httpx.Client, tmp_path: Path
) -> None:
    hosts.start("j")
    talk, bound = Talk(api), Talk(api, cwd=str(tmp_path))
    talk.turn("mock: say one")
    bound.turn("mock: say one")
    wait_kept(hosts, talk.id, 1)
    hosts.start("k")
    assert api.delete("/runners/j").status_code == 204
    for each in (talk, bound):
        assert each.send("mock: recall")["disposition"] == "queued"
    assert moved(talk)["reason"] == "the runner 'j' was removed"
    talk.until_type("turn.ended")
    assert said(talk.events).endswith("I remember 2 user turns, this one included.")
    assert (bound.get()["runner"]["name"], bound.get()["placement"]["state"]) == ("j", "lost")


@pytest.mark.root
def test_a_runner_whose_machine_was_started_anew_goes_on_with_its_sessions_at_once(tmp_path: Path) -> None:
    with running_server(tmp_path / "own" / "server", *SERVER[:-1], "600") as server:
        hosts = Hosts(server, tmp_path / "own")
        hosts.start("a")
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
            unheard, busy = Talk(api), Talk(api)
            for talk in (unheard, busy):
                talk.turn("mock: say one")
            unheard.send("mock: wait 600")
            unheard.until_type("turn.started")
            busy.send("mock: stream 2000 words 20/s")
            busy.until(lambda event: event["type"] == "item.delta")
            hosts.lose("a")
            hosts.start("a", prefix=another_boot(tmp_path))
            for talk in (unheard, busy):
                assert talk.until_type("turn.ended")["data"]["outcome"] == "interrupted"
                assert next_turn(talk, "mock: recall") == "I remember 3 user turns, this one included."
                assert "session.moved" not in talk.types()
            hosts.lose_all()


def another_boot(folder: Path) -> tuple[str, ...]:
    """What a program is started by that sees another start of the machine."""
    (folder / "boot").write_text("00000000-0000-4000-8000-000000000000\n")
    mounted = f"mount --bind {folder}/boot /proc/sys/kernel/random/boot_id"
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mounted} && exec "$@"', "sh")


def test_a_session_of_a_runner_that_leaves_for_good_goes_on_at_once(tmp_path: Path) -> None:
    waits_long = (*SERVER[:-1], "600")
    with running_server(tmp_path / "own" / "server", *waits_long) as server:
        hosts = Hosts(server, tmp_path / "own")
        leaving = hosts.start("a", "--leave")
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
            talk = Talk(api)
            talk.turn("mock: say one")
            wait_kept(hosts, talk.id, 1)
            talk.send("mock: wait 600")
            talk.until_type("turn.started")
            pid = talk.get()["process"]["pid"]
            hosts.start("b")
            leaving.process.terminate()
            data = moved(talk)
            assert (data["to_runner"], data["reason"]) == ("b", "the runner 'a' left for good")
            assert state_of(pid) in {"", "Z"}
            assert leaving.wait_ended()[0] == 0
            assert "a" not in runners_of(server.url)
            hosts.lose_all()


def test_a_move_goes_on_after_the_server_was_killed_in_the_middle_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    with running_server(folder / "server", *SERVER) as server:
        hosts = Hosts(server, folder)
        hosts.start("a")
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
            talk, second = Talk(api), Talk(api)
            talk.turn("mock: say one")
            wait_kept(hosts, talk.id, 1)
            for each in (talk, second):
                each.send("mock: wait 600")
                each.until_type("turn.started")
            hosts.lose("a")
            talk.until_type("turn.ended")
            server.process.kill()
            server.process.wait()
            with running_server(folder / "server", *SERVER, "--port", str(server.port)):
                hosts.start("b")
                assert moved(talk)["turn"] == 1
                assert moved(second)["lost"][-1] == "the agent's own memory: it is told the conversation"
                assert next_turn(talk, "mock: recall") == "I remember 2 user turns, this one included."
                hosts.lose_all()


def test_the_deadline_of_a_drain_outlives_the_server(tmp_path: Path) -> None:
    folder, waits_long = tmp_path / "own", (*SERVER[:-1], "600")
    with running_server(folder / "server", *waits_long) as server:
        hosts = Hosts(server, folder)
        hosts.start("a")
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
            talk = Talk(api)
            talk.send("mock: wait 600")
            talk.until_type("turn.started")
            until = api.post("/runners/a/drain", json={"deadlineSeconds": 15}).json()["drainUntil"]
            assert api.post("/runners/a/drain").json()["drainUntil"] == until
            server.process.kill()
            server.process.wait()
            with running_server(folder / "server", *waits_long, "--port", str(server.port)):
                hosts.start("b")
                assert api.get("/runners").json()["items"][1]["drainUntil"] == until
                ended = talk.until_type("turn.ended")
                assert (ended["data"]["outcome"], ended["time"] >= until) == ("interrupted", True)
                assert moved(talk)["reason"] == "the runner 'a' drains"
                assert api.post("/runners/a/resume").json()["drainUntil"] is None
                hosts.lose_all()
