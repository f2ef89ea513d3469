"""Nothing an agent starts outlives it, whatever it does and whoever is killed."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ostler.runner.processes.control import ROOM_BYTES
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import CannotStart, Command, Exit, Process
from ostler.runner.processes.tree import descendants
from tests.support.patience import until
from tests.support.runner_parts import PATIENCE, PROGRAMS, Leash, parent_of, started, state_of

KINDS = ["plain", "setsid", "doublefork", "ignore", "cleanenv", "forkloop", "stopped"]
ENV = {"PATH": os.defpath}


def tree(leash: Leash, main: str, *kinds: str) -> Command:
    argv = [sys.executable, "-I", "-S", str(PROGRAMS / "tree.py"), str(leash.path), main, *kinds]
    return Command(argv=argv, env=ENV, cwd="/")


async def planted(nursery: NurseryHandle, leash: Leash, main: str, *kinds: str) -> Process:
    """A tree whose every member is up."""
    process = await started(nursery, tree(leash, main, *kinds))
    await until(lambda: leash.has(b"r", len(kinds)) and leash.has(b"m", 1))
    assert not leash.all_dead()
    return process


async def gone(process: Process) -> None:
    await until(lambda: process.is_gone)
    process.release()


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_alive_after_a_stop(nursery: NurseryHandle, leash: Leash, kind: str) -> None:
    process = await planted(nursery, leash, "obey", kind)
    await process.stop(grace=2)
    assert leash.all_dead()
    assert process.exit == Exit(signal=signal.SIGINT, ordered="stop")
    process.release()


async def test_nothing_is_alive_after_a_kill(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", *KINDS)
    await process.stop(grace=60, force=True)
    assert leash.all_dead()
    assert process.exit == Exit(signal=signal.SIGKILL, ordered="kill")
    process.release()


async def test_a_kill_does_not_wait_for_a_stop_under_way(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", *KINDS)
    stopping = asyncio.create_task(process.stop(grace=600))
    await asyncio.sleep(0)
    await process.stop(grace=600, force=True)
    await stopping
    assert leash.all_dead()
    process.release()


async def test_nothing_is_alive_after_the_agent_leaves_by_itself(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "leave", *KINDS)
    process.input.write(b"go\n")
    await gone(process)
    assert leash.all_dead()
    assert process.exit == Exit(exit_code=7)


async def test_nothing_is_alive_after_the_agent_is_killed(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", *KINDS)
    os.kill(process.pid, signal.SIGKILL)
    await gone(process)
    assert leash.all_dead()
    assert process.exit == Exit(signal=signal.SIGKILL)


async def test_nothing_is_alive_after_the_runner_is_killed(leash: Leash) -> None:
    argv = [sys.executable, str(PROGRAMS / "server.py"), str(leash.path), *KINDS]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, env=ENV)
    with server:
        await until(lambda: leash.has(b"r", len(KINDS)) and leash.has(b"m", 1))
        keeper = parent_of(int((server.stdout or sys.stdin.buffer).readline()))
        nursery = parent_of(keeper)
        server.kill()
    await until(leash.all_dead)
    await until(lambda: not Path(f"/proc/{keeper}").exists() and not Path(f"/proc/{nursery}").exists())


async def test_nothing_is_alive_after_a_keeper_is_killed(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", *KINDS)
    os.kill(parent_of(process.pid), signal.SIGKILL)
    await gone(process)
    await until(leash.all_dead)
    assert process.exit == Exit()


async def test_a_keeper_that_hangs_is_overruled(
    nursery: NurseryHandle, leash: Leash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ostler.runner.processes.process.KILL_SECONDS", 0.2)
    process = await planted(nursery, leash, "stay", "setsid", "ignore")
    os.kill(parent_of(process.pid), signal.SIGSTOP)
    await process.stop(grace=0.1)
    assert process.is_gone
    await until(leash.all_dead)
    process.release()


async def test_a_killed_nursery_is_replaced_and_its_keepers_go_on(nursery: NurseryHandle, leash: Leash) -> None:
    first = await planted(nursery, leash, "stay", "setsid")
    old = parent_of(parent_of(first.pid))
    os.kill(old, signal.SIGKILL)
    second = await started(nursery, Command(argv=["sleep", "600"], env=ENV, cwd="/"))
    assert parent_of(parent_of(second.pid)) != old
    assert await first.freeze()
    await asyncio.gather(first.stop(grace=0.1), second.stop(grace=0.1))
    assert leash.all_dead()
    first.release()
    second.release()


async def test_a_kernel_without_children_files_is_searched_the_slow_way(
    nursery: NurseryHandle, leash: Leash, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await planted(nursery, leash, "stay", "plain", "setsid", "doublefork", "cleanenv")
    keeper = parent_of(process.pid)
    quick = set(descendants(keeper))
    assert len(quick) >= 5
    monkeypatch.setattr("ostler.runner.processes.tree._CHILDREN", "/no/such/file")
    assert set(descendants(keeper)) == quick
    await process.stop(grace=0, force=True)
    process.release()


async def test_a_frozen_tree_stands_still_and_then_goes_on(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", "ticking", "plain", "doublefork")
    await until(lambda: leash.has(b".", 3))
    assert await process.freeze()
    tree = list(descendants(parent_of(process.pid)))
    assert len(tree) >= 4
    assert {state_of(pid) for pid in tree} - {"Z"} == {"T"}
    leash.hear()
    ticks = leash.heard.count(b".")
    assert await process.thaw()
    await until(lambda: leash.has(b".", ticks + 3))
    await process.stop(grace=0.1)
    assert leash.all_dead()
    process.release()


async def test_a_thaw_leaves_what_was_stopped_before(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "stay", "stopped")
    keeper = parent_of(process.pid)
    await until(lambda: [state_of(pid) for pid in descendants(keeper)].count("T") == 1)
    assert await process.freeze()
    assert await process.thaw()
    await until(lambda: [state_of(pid) for pid in descendants(keeper)].count("T") == 1)
    assert state_of(process.pid) != "T"
    await process.stop(grace=0, force=True)
    process.release()


async def test_a_frozen_tree_can_be_stopped_gently(nursery: NurseryHandle, leash: Leash) -> None:
    process = await planted(nursery, leash, "obey", "setsid")
    await process.freeze()
    await process.stop(grace=PATIENCE)
    assert process.exit == Exit(signal=signal.SIGINT, ordered="stop")
    assert leash.all_dead()
    process.release()


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (["/no/such/program"], "/", "/no/such/program cannot be started (No such file or directory)."),
        (["no-such-program"], "/", "no-such-program cannot be started (No such file or directory)."),
        (["/proc/self/stat"], "/", "/proc/self/stat cannot be started (Permission denied)."),
        (["true"], "/no/such/folder", "its folder /no/such/folder cannot be entered (No such file or directory)."),
        (["true", "nul\0"], "/", "true cannot be started (embedded null byte)."),
    ],
)
async def test_a_start_that_fails_says_why(nursery: NurseryHandle, argv: list[str], cwd: str, reason: str) -> None:
    with pytest.raises(CannotStart) as caught:
        await started(nursery, Command(argv=argv, env=ENV, cwd=cwd))
    assert str(caught.value) == reason


async def test_an_agent_starts_with_a_clean_slate(nursery: NurseryHandle) -> None:
    program = (
        "import os, signal; print(sorted(os.listdir('/proc/self/fd'), key=int)[:3], os.getpid() == os.getsid(0), "
        "len(os.listdir('/proc/self/fd')), signal.getsignal(signal.SIGTERM), dict(os.environ)['ONLY'], len(os.environ))"
    )
    command = Command(
        argv=[sys.executable, "-I", "-S", "-c", program], env={"ONLY": "this é", "LC_CTYPE": "C.UTF-8"}, cwd="/"
    )
    process = await started(nursery, command)
    await until(lambda: process.is_gone)
    assert process.read() == b"['0', '1', '2'] True 4 0 this \xc3\xa9 2\n"
    process.release()


async def test_an_agent_that_does_not_read_holds_its_writers_back(nursery: NurseryHandle) -> None:
    process = await started(nursery, Command(argv=["sleep", "600"], env=ENV, cwd="/"))
    assert await process.input.room(0)
    assert process.input.write(b"x" * 5 * ROOM_BYTES)
    assert process.input.pending > ROOM_BYTES
    assert not await process.input.room(0.01)
    waiting = asyncio.create_task(process.input.room(PATIENCE))
    await process.stop(grace=0, force=True)
    assert await waiting
    assert process.input.pending == 0
    process.release()


async def test_what_is_written_arrives_whole_and_in_order(nursery: NurseryHandle) -> None:
    process = await started(nursery, Command(argv=["sh", "-c", "head -c 2100000 | sha256sum"], env=ENV, cwd="/"))
    for letter in (b"a", b"b", b"c"):
        process.input.write(letter * 700_000)
    await until(lambda: process.input.pending == 0)
    await until(lambda: process.is_gone)
    whole = b"a" * 700_000 + b"b" * 700_000 + b"c" * 700_000
    expected = subprocess.run(["sha256sum"], input=whole, capture_output=True, check=True).stdout
    assert process.read() == expected
    process.release()


async def test_many_agents_start_and_stop_at_once(nursery: NurseryHandle) -> None:
    command = Command(argv=["sleep", "600"], env=ENV, cwd="/")
    processes = await asyncio.gather(*(started(nursery, command) for _ in range(60)))
    await asyncio.gather(*(process.stop(grace=PATIENCE) for process in processes))
    assert {process.exit for process in processes} == {Exit(signal=signal.SIGINT, ordered="stop")}
    for process in processes:
        process.release()
