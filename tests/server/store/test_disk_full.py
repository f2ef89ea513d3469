"""A full disk refuses what is new, keeps what is there, and makes agents wait until there is room again."""

import itertools
import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.base.errors import StoreUnavailable
from ostler.runner.processes.journal import Answered, Journal, Opened, read_calls
from ostler.runner.processes.spool import MOST_STDERR, Spool
from ostler.wire.running import PermissionAnswer
from tests.support.patience import wait_until
from tests.support.serving import RunningServer
from tests.support.small_disk import SmallDisk
from tests.support.talk import Talk

pytestmark = pytest.mark.root


@pytest.fixture
def disk(state_dir: Path) -> Iterator[SmallDisk]:
    small = SmallDisk(state_dir)
    yield small
    small.close()


def assert_refused(answer: httpx.Response) -> None:
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (503, 503, "store_unavailable")
    assert problem["detail"].endswith("Nothing was changed. See to its disk or database and try again.")
    assert answer.headers["retry-after"] == "1"


def cut_short(disk: SmallDisk, server: RunningServer, api: httpx.Client, prompt: str) -> Talk:
    """A talk in whose midst the disk became full, as the server has seen."""
    talk = Talk(api)
    talk.send(prompt)
    talk.until_type("item.delta")
    disk.fill()
    wait_until(lambda: "append_failed" in server.stderr.read_text(), what="nothing was refused")
    return talk


def words(events: list[dict[str, Any]]) -> list[str]:
    deltas = [event["data"]["delta"] for event in events if event["type"] == "item.delta"]
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text").split()


def assert_whole(talk: Talk) -> None:
    stored = talk.get("/events?limit=10000")["events"]
    assert [event["sequence"] for event in stored] == list(range(1, len(stored) + 1))
    assert stored[: len(talk.events)] == talk.events


def refused_at_last(api: httpx.Client, session: str) -> None:
    """A write-ahead log has some room of its own; use it up."""
    title = {"title": "x" * 10_000}
    wait_until(
        lambda: api.patch(f"/sessions/{session}", json=title).status_code == 503, what="a full disk took everything"
    )


def test_writes_are_refused_and_reads_go_on(disk: SmallDisk) -> None:
    with disk.server() as (_, api):
        talk = Talk(api)
        talk.turn("mock: say before")
        disk.fill()
        refused_at_last(api, talk.id)
        before = talk.get("/events?limit=10000")
        assert_refused(talk.post("/messages", message="mock: say during"))
        assert_refused(api.post("/sessions", json={"agent": "mock", "key": "new"}))
        assert_refused(api.post("/sessions", json={"agent": "mock"}, headers={"idempotency-key": "one"}))
        assert_refused(api.patch(f"/sessions/{talk.id}", json={"title": "y"}))
        assert talk.get("/events?limit=10000") == before
        assert api.get("/sessions").json()["total"] == 1
        assert api.get("/sessions/new").status_code == 404
        assert api.get("/healthz").status_code == 200
        unready = api.get("/readyz")
        assert (unready.status_code, unready.json()["status"]) == (503, "unavailable")
        assert unready.json()["checks"] == {"store": "its disk is full"}
        disk.make_room()
        assert api.get("/readyz").json()["status"] == "ready"
        assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"
        created = api.post("/sessions", json={"agent": "mock"}, headers={"idempotency-key": "one"})
        assert created.status_code == 201
        assert_whole(talk)
        folders = {folder.name for folder in disk.seen_from_here("sessions").iterdir()}
        assert folders == {talk.id, created.json()["id"]}


def test_an_agent_at_work_waits_and_nothing_it_said_is_lost(disk: SmallDisk) -> None:
    with disk.server() as (server, api), ThreadPoolExecutor(1) as pool:
        talk = cut_short(disk, server, api, "mock: stream 6000 words 1500/s")
        reading = pool.submit(talk.until_type, "turn.ended")
        assert not reading.done()
        disk.make_room()
        assert reading.result(60)["data"]["outcome"] == "completed"
        assert words(talk.events) == [f"w{number}" for number in range(1, 6001)]
        assert_whole(talk)


def test_an_ask_stays_open_until_its_answer_can_be_kept(disk: SmallDisk) -> None:
    with disk.server() as (_, api):
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
        disk.fill()
        refused_at_last(api, talk.id)
        assert_refused(talk.post(f"/permissions/{ask}/reply", reply="once"))
        assert talk.get()["activity"] == "waiting"
        disk.make_room()
        assert talk.post(f"/permissions/{ask}/reply", reply="once").status_code == 200
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert_whole(talk)


def test_a_session_whose_agent_finds_no_room_to_start_goes_on_later(disk: SmallDisk) -> None:
    with disk.server() as (_, api):
        talk = Talk(api)
        disk.fill_names()
        events = talk.turn("mock: say hello")
        (error,) = [event["data"] for event in events if event["type"] == "error"]
        assert error["code"] == "store_unavailable"
        assert "No space left on device" in error["message"]
        assert (events[-1]["data"]["outcome"], events[-1]["data"]["stop_reason"]) == ("failed", "store_unavailable")
        assert talk.get()["status"] == "running"
        disk.make_room()
        assert talk.turn("mock: say hello")[-1]["data"]["outcome"] == "completed"
        assert list(disk.seen_from_here("keepers").glob(f"{talk.id}.*/spec.new")) == []
        assert_whole(talk)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_acknowledged_is_there_after_a_restart_on_a_full_disk(disk: SmallDisk, end: signal.Signals) -> None:
    with disk.server() as (server, api):
        talk = cut_short(disk, server, api, "mock: stream 6000 words 1500/s")
        server.process.send_signal(end)
        server.process.wait(60)
    disk.make_room()
    with disk.server() as (_, api):
        talk.api = api
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert words(talk.events) == [f"w{number}" for number in range(1, 6001)]
        assert_whole(talk)


def test_the_turn_of_an_agent_that_is_killed_with_its_server_on_a_full_disk_ends_with_an_answer(
    disk: SmallDisk,
) -> None:
    with disk.server() as (server, api):
        talk = cut_short(disk, server, api, "mock: stream 60000 words 3000/s")
        running = keeper_of(disk)
        server.process.kill()
        server.process.wait(60)
        os.kill(running["keeper"], signal.SIGKILL)
    wait_until(lambda: not is_alive(running["pid"]), what="the agent did not die")
    disk.make_room()
    with disk.server() as (_, api):
        talk.api = api
        ended = talk.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "keeper_lost")
        assert [event["data"]["code"] for event in talk.events if event["type"] == "error"] == ["agent_process_exited"]
        said = words(talk.events)
        assert said[:-1] == [f"w{number}" for number in range(1, len(said))]
        assert f"w{len(said)}".startswith(said[-1])
        assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"
        assert_whole(talk)


def test_what_an_agent_heard_while_the_disk_was_full_is_in_the_log_once(disk: SmallDisk) -> None:
    with disk.server() as (server, api), ThreadPoolExecutor(1) as pool:
        talk = cut_short(disk, server, api, "mock: stream 6000 words 1500/s")
        steering = pool.submit(talk.post, "/messages", message="mock: say louder", when_busy="steer")
        refused_at_last(api, talk.id)
        assert not steering.done()
        disk.make_room()
        receipt = steering.result(60)
        assert (receipt.status_code, receipt.json()["disposition"]) == (202, "steered")
        talk.until_type("turn.ended")
        items = [event["data"]["item"]["item_id"] for event in talk.events if event["type"] == "item.completed"]
        assert items.count(f"itm_{receipt.json()['promptId']}") == 1
        assert_whole(talk)


def test_a_session_that_could_not_be_stopped_on_a_full_disk_is_stopped_later(disk: SmallDisk) -> None:
    with disk.server() as (_, api):
        talk = Talk(api)
        talk.turn("mock: say before")
        disk.fill()
        refused_at_last(api, talk.id)
        assert_refused(talk.post("/stop"))
        disk.make_room()
        assert talk.post("/stop").json()["status"] == "stopped"


def keeper_of(disk: SmallDisk) -> dict[str, int]:
    """The process numbers that the keeper of the only agent noted."""
    (note,) = disk.seen_from_here("keepers").glob("*/running")
    found: dict[str, int] = json.loads(note.read_text())
    return found


def left_alone_on_a_full_disk(disk: SmallDisk) -> int:
    """A keeper whose agent is dead, whose server is gone, and whose last words cannot be written."""
    with disk.server("--orphan-timeout-seconds", "3600") as (server, api):
        cut_short(disk, server, api, "mock: stream 60000 words 3000/s")
        running = keeper_of(disk)
        (spool,) = disk.seen_from_here("keepers").glob("*/output")
        wait_until(
            lambda: spool.stat().st_size % os.sysconf("SC_PAGESIZE") == 0,
            what="the spool had room to the end of its page",
        )
        server.process.kill()
        server.process.wait(60)
        os.kill(running["pid"], signal.SIGKILL)
    wait_until(lambda: not children_of(running["keeper"]), what="the agent did not die")
    wait_until(lambda: catches(running["keeper"], signal.SIGTERM), what="the keeper does not wait for room")
    return running["keeper"]


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has something to do when it gets a signal; a keeper ignores most while its agent lives."""
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def children_of(pid: int) -> str:
    """The processes below another one."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return ""


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_keeper_left_alone_on_a_full_disk_gives_up(disk: SmallDisk) -> None:
    keeper = left_alone_on_a_full_disk(disk)
    wait_until(lambda: not is_alive(keeper), what="the keeper stayed", seconds=90)


def test_a_keeper_left_alone_on_a_full_disk_ends_when_told(disk: SmallDisk) -> None:
    keeper = left_alone_on_a_full_disk(disk)
    os.kill(keeper, signal.SIGTERM)
    wait_until(lambda: not is_alive(keeper), what="the keeper stayed", seconds=15)


def calls_until_refused(journal: Journal) -> int:
    """How many calls the journal has when it takes no more."""
    for number in itertools.count(1):
        try:
            journal.add(Answered(PermissionAnswer(ask_id=f"per_{number}", allow=True)), at=number)
        except StoreUnavailable:
            return number
    raise AssertionError("a full disk took everything")


def test_a_journal_has_every_call_it_took_and_no_half_of_one(disk: SmallDisk) -> None:
    folder = disk.seen_from_here("journal")
    folder.mkdir()
    journal = Journal(folder)
    journal.add(Opened(), at=0)
    disk.fill()
    taken = calls_until_refused(journal)
    disk.make_room()
    journal.add(Opened(), at=taken)
    journal.close()
    assert [entry.at for entry in read_calls(folder)] == list(range(taken + 1))


def test_a_spool_holds_what_the_disk_did_not_take_until_it_does(disk: SmallDisk) -> None:
    folder = disk.seen_from_here("spool")
    folder.mkdir()
    said = os.urandom(100_000)
    spool = Spool(os.open(folder, os.O_RDONLY))
    spool.add(said[:1000])
    disk.fill()
    spool.add(said[1000:])
    spool.note("running", {"pid": 1})
    assert (spool.is_stuck, spool.size < len(said)) == (True, True)
    disk.make_room()
    spool.retry()
    assert (spool.is_stuck, spool.size) == (False, len(said))
    assert (folder / "output").read_bytes() == said
    assert not (folder / "running").exists()


def test_a_note_is_whole_or_as_it_was(disk: SmallDisk) -> None:
    folder = disk.seen_from_here("spool")
    folder.mkdir()
    spool = Spool(os.open(folder, os.O_RDONLY))
    spool.note("running", {"pid": 1})
    disk.fill()
    disk.leave(4096)
    spool.note("running", {"pid": 2, "more": "x" * 10_000})
    assert json.loads((folder / "running").read_text()) == {"pid": 1}
    assert not (folder / "running.new").exists()


def test_a_loud_agent_on_a_full_disk_costs_no_descriptors(disk: SmallDisk) -> None:
    folder = disk.seen_from_here("spool")
    folder.mkdir()
    spool = Spool(os.open(folder, os.O_RDONLY))
    spool.add_stderr(b"loud\n" * (MOST_STDERR // 5))
    disk.fill()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        spool.add_stderr(b"louder\n")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    disk.make_room()
    spool.add_stderr(b"last\n")
    assert (folder / "stderr").read_bytes().endswith(b"last\n")
    assert (folder / "stderr").stat().st_size < MOST_STDERR
