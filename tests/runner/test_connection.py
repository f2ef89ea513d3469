"""A connection keeps its promises to the session, whatever the agent does."""

import asyncio
import hashlib
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.base.errors import AgentExited, AgentStartFailed, SessionBusy, TimedOut
from ostler.link.protocol import Connection
from ostler.runner.execution.limits import Limits
from ostler.runner.local import LocalRunner
from ostler.wire.events import (
    AgentUnparsedData,
    ErrorData,
    PermissionData,
    SessionInfoData,
    TurnEndedData,
)
from ostler.wire.items import StderrOutput
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentExit, AgentSpec, Draft, PermissionAnswer, Prompt, RunnerStats
from tests.support.patience import until
from tests.support.runner_parts import HERE, PATIENCE, Leash, Recorder, TinyAdapter

LIMITS = Limits(
    start_timeout=PATIENCE,
    turn_timeout=0,
    interrupt_grace=PATIENCE,
    stop_grace=2,
    max_frame_bytes=8 * 2**20,
    max_item_length=2**30,
)
ENVIRON = {"PATH": os.defpath, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "SECRET": "of the server"}


def spec_in(folder: Path, **changes: Any) -> AgentSpec:
    spec = AgentSpec(
        session_id="ses_1",
        agent="tiny",
        start=3,
        cwd=str(folder),
        home=str(folder / "home"),
        env={"GIVEN": "by the client"},
        permission_mode="default",
    )
    return msgspec.structs.replace(spec, **changes)


@asynccontextmanager
async def running(adapter: TinyAdapter | None = None, **limits: Any) -> AsyncIterator[LocalRunner]:
    chosen = msgspec.structs.replace(LIMITS, **limits)
    runner = LocalRunner(
        [adapter or TinyAdapter()], folder=Path(tempfile.mkdtemp()), environ=ENVIRON, search=[HERE], limits=chosen
    )
    try:
        yield runner
    finally:
        await runner.close()


def prompt(*lines: str, turn: str = "t") -> Prompt:
    return Prompt(prompt_id="p", turn_id=turn, parts=(TextPart(text="\n".join(lines)),))


async def turn(connection: Connection, sink: Recorder, *lines: str) -> None:
    """One whole turn."""
    before = sink.turns_ended()
    await connection.prompt(prompt(*lines))
    await until(lambda: sink.turns_ended() > before)


def data_of(sink: Recorder, kind: str) -> Any:
    return next(draft.data for draft in sink.drafts if draft.type == kind)


def ended(outcome: Any, reason: str | None) -> TurnEndedData:
    return TurnEndedData(phase="ended", turn_id="t", outcome=outcome, stop_reason=reason)


async def test_a_turn_is_delivered_in_order_with_one_end(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, "say one", "say two", "done completed", "done failed")
        native = sink.native_session_id
    assert sink.types() == [
        "session.info",
        "item.started",
        "item.delta",
        "item.delta",
        "item.completed",
        "turn.ended",
    ]
    info = SessionInfoData(native_session_id=native, agent_version="1", start=3, memory="replayed")
    assert sink.drafts[0] == Draft("session.info", info, source="daemon", synthetic=True)
    assert sink.texts() == ["one", "two"]
    assert sink.drafts[-1] == Draft("turn.ended", ended("completed", None), raw=b'{"done": "completed"}')
    assert sink.end is not None
    assert (sink.end.expected, sink.end.exit_code, sink.end.signal) == (True, None, signal.SIGINT)


async def test_frames_that_make_no_sense_are_recorded_and_the_turn_goes_on(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(
            connection, sink, "raw ff00", "raw 7b", 'frame {"what": 1}', 'frame {"boom": "bang"}', "done completed"
        )
        stats = await runner.stats()
    found = [draft for draft in sink.drafts if isinstance(draft.data, AgentUnparsedData)]
    first, second, third, fourth = (draft.data for draft in found)
    digest = hashlib.sha256(b"\xff\x00").hexdigest()
    assert first == AgentUnparsedData(error="Frame is not valid UTF-8", location="frame", raw_hash=digest)
    assert found[0].raw == json.dumps("\ufffd\0", ensure_ascii=False).replace("\0", "\\u0000").encode()
    assert getattr(second, "error", "").startswith("DecodeError: ")
    assert (getattr(third, "error", ""), getattr(third, "location", "")) == ("unknown frame", "$")
    assert getattr(fourth, "error", "") == "RuntimeError: bang"
    assert getattr(fourth, "location", "").startswith("runner_parts.py:")
    assert stats == RunnerStats(processes=1, frames={"tiny": 6}, unparsed_frames={"tiny": 4})


async def test_a_frame_of_5_megabytes_arrives_whole(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, "line 5000000", "done completed")
    assert sink.texts() == ["x" * 5_000_000]


async def test_a_long_text_of_an_overlong_frame_loses_its_middle(tmp_path: Path) -> None:
    sink = Recorder()
    async with running(max_frame_bytes=100_000) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, "line 5000000", "say after", "done completed")
    cut, after = sink.texts()
    assert 70_000 < len(cut) < 75_000
    assert "bytes cut here; see max_item_length" in cut
    assert after == "after"


async def test_an_overlong_frame_is_recorded_by_its_beginning(tmp_path: Path) -> None:
    sink = Recorder()
    async with running(max_frame_bytes=100_000) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, f"frame {json.dumps({'n': [1] * 50_000})}", "say after", "done completed")
    seen = (b'{"n": [' + b"1, " * 50_000)[:100_000]
    unparsed = data_of(sink, "agent.unparsed")
    assert unparsed == AgentUnparsedData(
        error="Frame is longer than 100000 bytes", location="frame", raw_hash=hashlib.sha256(seen).hexdigest()
    )
    raw = next(draft.raw for draft in sink.drafts if draft.data is unparsed)
    assert raw is not None
    assert msgspec.json.decode(raw) == seen[:65536].decode()
    assert sink.texts() == ["after"]


async def test_a_flood_waits_for_a_slow_log_and_takes_no_memory(tmp_path: Path) -> None:
    sink = Recorder(keep=False)
    sink.pause = 0.001
    peak = 0

    def measure() -> None:
        nonlocal peak
        peak = max(peak, _resident())

    sink.on_deliver = measure
    async with running(max_item_length=8 * 2**20) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        before = _resident()
        await turn(connection, sink, "flood 60000000", "done completed")
    assert sink.deliveries > 100
    assert peak - before < 40 * 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def test_an_ask_is_answered_and_the_agent_hears_it(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("ask per_1", "done completed"))
        await until(lambda: "permission.requested" in sink.types())
        await connection.answer(PermissionAnswer(ask_id="per_1", allow=True))
        await until(lambda: sink.turns_ended() == 1)
    assert sink.texts() == ['{"allow": true, "answer": "per_1"}']
    assert "permission.resolved" not in sink.types()


async def test_an_interrupt_cancels_asks_first_and_the_agent_goes_on_living(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("ask per_1", "obey"))
        await until(lambda: "permission.requested" in sink.types())
        await connection.interrupt()
        await connection.interrupt()
        await until(lambda: sink.turns_ended() == 1)
        await turn(connection, sink, "say again", "done completed")
    resolved = PermissionData(
        permission_id="per_1", action="write", status="reject", metadata={"reason": "interrupted"}
    )
    assert data_of(sink, "permission.resolved") == resolved
    assert sink.texts() == ['{"allow": false, "answer": "per_1"}', '{"interrupt": true}', "again"]
    assert data_of(sink, "turn.ended").outcome == "interrupted"


async def test_an_agent_that_ignores_an_interrupt_is_stopped(tmp_path: Path) -> None:
    sink = Recorder()
    async with running(interrupt_grace=0.1) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("say before", "deaf"))
        await until(lambda: sink.texts() == ["before"])
        await connection.interrupt()
        await until(lambda: sink.end is not None)
    assert sink.types()[-2:] == ["item.completed", "turn.ended"]
    assert sink.drafts[-1].data == ended("interrupted", "interrupted")
    assert sink.end is not None
    assert (sink.end.expected, sink.end.signal) == (True, signal.SIGKILL)


@pytest.mark.parametrize(("then", "dies"), [("obey", False), ("deaf", True)])
async def test_a_turn_that_takes_too_long_has_failed(tmp_path: Path, then: str, dies: bool) -> None:
    sink = Recorder()
    async with running(interrupt_grace=PATIENCE * (not dies) or 0.1, turn_timeout=600) as runner:
        connection = await runner.connect(spec_in(tmp_path, turn_timeout_seconds=0.2), sink)
        await turn(connection, sink, then)
    error = ErrorData(
        message="The turn took longer than 0.2 seconds and was ended.", code="turn_timeout", details={"seconds": 0.2}
    )
    assert data_of(sink, "error") == error
    assert data_of(sink, "turn.ended") == ended("failed", "timeout")
    assert sink.end is not None
    assert (sink.end.signal == signal.SIGKILL) == dies


async def test_an_agent_that_dies_in_a_turn_fails_it(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("say half a", "stderr out of luck", "exit 3"))
        await until(lambda: sink.end is not None)
        with pytest.raises(AgentExited):
            await connection.prompt(prompt("say more"))
        assert (await runner.stats()).processes == 0
    stderr = StderrOutput(truncated=False, head="out of luck", total_lines=1)
    assert sink.types()[-3:] == ["error", "item.completed", "turn.ended"]
    assert data_of(sink, "error") == ErrorData(
        message="Agent 'tiny' exited with code 3 during a turn. The next prompt starts it again.",
        code="agent_process_exited",
        details={"exit_code": 3, "signal": None, "stderr": msgspec.to_builtins(stderr)},
    )
    assert sink.drafts[-1].data == ended("failed", "agent_exited")
    assert sink.end == AgentExit(expected=False, exit_code=3, stderr=stderr)


async def test_an_agent_that_dies_of_an_interrupt_was_interrupted(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("ask per_1", "exit 1"))
        await until(lambda: "permission.requested" in sink.types())
        await connection.interrupt()
        await until(lambda: sink.end is not None)
    assert data_of(sink, "error").code == "agent_process_exited"
    assert sink.drafts[-1].data == ended("interrupted", "interrupted")


async def test_an_agent_that_closes_its_output_is_ended(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, "close")
        await until(lambda: sink.end is not None)
    assert data_of(sink, "turn.ended") == ended("failed", "agent_exited")


async def test_closing_in_a_turn_interrupts_it(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("say before", "deaf"))
        await until(lambda: sink.texts() == ["before"])
        await connection.close(force=True)
        assert sink.end is not None
        assert sink.drafts[-1].data == ended("interrupted", "stopped")
        assert "error" not in sink.types()


async def test_the_session_may_close_from_within_a_delivery(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)

        async def deliver(drafts: Any, step: int) -> None:
            sink.drafts += drafts
            await connection.close(force=True)

        sink.deliver = deliver  # type: ignore[method-assign]  # a sink of its own for one test
        await connection.prompt(prompt("say stop", "deaf"))
        await until(lambda: sink.end is not None)
    assert sink.drafts[-1].data == ended("interrupted", "stopped")


async def test_a_second_prompt_in_a_turn_is_refused_and_steering_is_up_to_the_agent(tmp_path: Path) -> None:
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        assert not await connection.steer(prompt("say too early"))
        await connection.prompt(prompt("say first"))
        with pytest.raises(SessionBusy):
            await connection.prompt(prompt("say second"))
        assert not await connection.steer(prompt("no"))
        assert await connection.steer(prompt("say steered", "done completed"))
        await until(lambda: sink.turns_ended() == 1)
    assert sink.texts() == ["first", "steered"]


async def test_an_agent_that_does_not_read_can_still_be_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ostler.runner.execution.connection._ROOM_SECONDS", 0.1)
    sink = Recorder()
    async with running(interrupt_grace=0.1) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("deaf"))
        assert await connection.steer(prompt("x" * 3_000_000))
        with pytest.raises(TimedOut):
            await connection.steer(prompt("x"))
        await connection.interrupt()
        await until(lambda: sink.end is not None)
    assert sink.drafts[-1].data == ended("interrupted", "interrupted")


async def test_an_agent_that_leaves_far_too_much_unread_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ostler.runner.processes.control.MOST_BYTES", 1_000_000)
    sink = Recorder()
    async with running() as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("deaf"))
        assert await connection.steer(prompt("x" * 900_000))
        await connection.steer(prompt("x" * 900_000))
        await until(lambda: sink.end is not None)
    assert data_of(sink, "error").code == "agent_not_reading"
    assert sink.drafts[-1].data == ended("failed", "agent_not_reading")


async def test_a_frozen_turn_does_not_run_out_of_time(tmp_path: Path) -> None:
    sink = Recorder()
    async with running(turn_timeout=4.0) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await connection.prompt(prompt("say before", "obey"))
        await until(lambda: sink.texts() == ["before"])
        await connection.freeze()
        loop = asyncio.get_running_loop()
        passed = loop.create_future()
        loop.call_later(4.5, passed.set_result, None)
        await passed
        assert "error" not in sink.types()
        await connection.thaw()
        await until(lambda: sink.turns_ended() == 1)
    assert data_of(sink, "error").code == "turn_timeout"


async def test_the_agent_gets_its_own_home_and_a_scrubbed_environment(tmp_path: Path) -> None:
    sink = Recorder()
    adapter = TinyAdapter(files={".config/tiny/settings.json": "{}"})
    async with running(adapter) as runner:
        connection = await runner.connect(spec_in(tmp_path), sink)
        await turn(connection, sink, "names", "env HOME", "env TMPDIR", "env GIVEN", "done completed")
    names, *values = sink.texts()
    assert names == (
        "GIVEN HOME LANG LC_ALL PATH TMPDIR TZ "
        "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME"
    )
    home = tmp_path / "home"
    assert values == [str(home), str(home / "tmp"), "by the client"]
    written = home / ".config/tiny/settings.json"
    assert (written.read_text(), written.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == ("{}", 0o600, 0o700)


@pytest.mark.parametrize("name", ["../outside", "link/outside"])
async def test_files_are_never_written_outside_the_home(tmp_path: Path, name: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path)
    async with running(TinyAdapter(files={name: "x"})) as runner:
        with pytest.raises(AgentStartFailed, match="lies outside the agent's home"):
            await runner.connect(spec_in(tmp_path), Recorder())
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("adapter", "changes", "reason", "exit_code"),
    [
        (TinyAdapter("/no/such/program"), {}, "/no/such/program cannot be started (No such file", None),
        (TinyAdapter(), {"cwd": "/no/such/folder"}, "its folder /no/such/folder cannot be entered", None),
        (TinyAdapter.that_first("exit 4"), {}, "it exited with code 4 before it was ready.", 4),
        (TinyAdapter("sh", "-c", "echo no licence >&2; exit 5"), {}, "code 5 before it was ready. It said: no lic", 5),
        (TinyAdapter("sh", "-c", "echo thinking >&2; sleep 600"), {}, "it was not ready within 0.5 seconds.", None),
        (TinyAdapter("sh", "-c", "exec >&-; sleep 600"), {}, "it was not ready within 0.5 seconds.", None),
    ],
)
async def test_a_start_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, adapter: TinyAdapter, changes: dict[str, str], reason: str, exit_code: int | None
) -> None:
    sink = Recorder()
    async with running(adapter, start_timeout=PATIENCE if exit_code else 0.5) as runner:
        with pytest.raises(AgentStartFailed) as caught:
            await runner.connect(spec_in(tmp_path, **changes), sink)
        assert (await runner.stats()).processes == 0
    assert reason in str(caught.value)
    assert caught.value.fields["exit_code"] == exit_code
    assert set(caught.value.fields) == {"agent", "reason", "exit_code", "stderr"}
    assert sink.end is None


async def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path, leash: Leash) -> None:
    adapter = TinyAdapter("sh", "-c", f"exec 9>{leash.path}; echo up >&9; setsid sleep 600 & sleep 600")
    async with running(adapter) as runner:
        starting = asyncio.create_task(runner.connect(spec_in(tmp_path), Recorder()))
        await until(lambda: leash.has(b"up", 1))
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert leash.all_dead()
