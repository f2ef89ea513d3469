"""The local runner: what it offers, what it refuses, and the real mock agent through it."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import uvloop

from ostler import __version__
from ostler.agents.mock import MockAdapter
from ostler.base.errors import AgentNotInstalled, InstallFailed, Stopping, UnsupportedAgent
from ostler.link.protocol import Connection, Runner
from ostler.runner.execution.limits import Limits
from ostler.runner.local import LocalRunner
from ostler.wire.agents import Installed
from ostler.wire.events import TurnEndedData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Prompt
from tests.support.patience import until
from tests.support.runner_parts import HERE, PATIENCE, Recorder, TinyAdapter

LIMITS = Limits(start_timeout=PATIENCE, turn_timeout=0, interrupt_grace=0.3, stop_grace=0.3, max_frame_bytes=8 * 2**20)


def runner_of(*search: str) -> LocalRunner:
    environ = {"PATH": os.defpath}
    return LocalRunner(
        [MockAdapter(), TinyAdapter()], folder=Path(tempfile.mkdtemp()), environ=environ, search=search, limits=LIMITS
    )


@pytest.fixture
async def runner() -> AsyncIterator[LocalRunner]:
    made = runner_of(HERE)
    yield made
    await made.close()


def spec_in(folder: Path, agent: str = "mock") -> AgentSpec:
    home = str(folder / "home")
    return AgentSpec(
        session_id=f"ses_{folder.name}",
        agent=agent,
        start=1,
        cwd=str(folder),
        home=home,
        env={},
        permission_mode="default",
    )


async def said(connection: Connection, sink: Recorder, text: str) -> str:
    """The text of one whole turn."""
    ends, texts = sink.turns_ended(), len(sink.texts())
    await connection.prompt(Prompt(prompt_id="p", turn_id="t", parts=(TextPart(text=text),)))
    await until(lambda: sink.turns_ended() > ends or sink.end is not None)
    return "".join(sink.texts()[texts:])


async def test_the_catalogue_tells_what_is_there() -> None:
    runner: Runner = runner_of("nowhere")
    mock, tiny = await runner.catalogue()
    assert (mock.id, mock.installed, mock.version, mock.install_hint) == ("mock", True, __version__, None)
    assert (tiny.id, tiny.installed, tiny.versions) == ("tiny", False, ())
    assert tiny.install_hint == "ostler agents install tiny"
    assert mock.settings_schema_ref == "/api/v1/schemas/agents/mock.json"


async def test_what_cannot_start_is_refused_before_it_starts(runner: LocalRunner, tmp_path: Path) -> None:
    await runner.validate(spec_in(tmp_path))
    with pytest.raises(UnsupportedAgent, match="Known agents: mock, tiny"):
        await runner.validate(spec_in(tmp_path, "nobody"))
    with pytest.raises(AgentNotInstalled):
        await runner_of("nowhere").validate(spec_in(tmp_path, "tiny"))
    assert not (tmp_path / "home").exists()


async def test_the_mock_is_always_installed(runner: LocalRunner) -> None:
    path = str((await runner.catalogue())[0].path)
    assert await runner.install("mock", None) == Installed(agent="mock", version=__version__, path=path)
    with pytest.raises(InstallFailed):
        await runner.install("mock", "0.0.0-nothing")
    with pytest.raises(UnsupportedAgent):
        await runner.install("nobody", None)


async def test_an_alias_names_the_same_agent(runner: LocalRunner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path, "small"), sink)
    assert await said(connection, sink, "say hello\ndone completed") == "hello"


async def test_closing_ends_all_agents_and_refuses_new_ones(tmp_path: Path) -> None:
    runner = runner_of(HERE)
    sinks = [Recorder() for _ in range(5)]
    await asyncio.gather(*(runner.connect(spec_in(tmp_path / str(n)), sink) for n, sink in enumerate(sinks)))
    assert (await runner.stats()).processes == 5
    await runner.close()
    assert (await runner.stats()).processes == 0
    assert [sink.end is not None and sink.end.expected for sink in sinks] == [True] * 5
    with pytest.raises(Stopping):
        await runner.connect(spec_in(tmp_path), Recorder())


async def test_the_mock_agent_remembers_across_processes(runner: LocalRunner, tmp_path: Path) -> None:
    sink = Recorder()
    first = await runner.connect(spec_in(tmp_path), sink)
    assert await said(first, sink, "mock: say hello") == "hello"
    await first.close(force=False)
    again = msgspec.structs.replace(spec_in(tmp_path), start=2, resume=sink.native_session_id)
    second = await runner.connect(again, later := Recorder())
    assert later.native_session_id == sink.native_session_id
    assert "2 user turns" in await said(second, later, "mock: recall")


@pytest.mark.parametrize("kind", ["plain", "setsid", "doublefork", "ignore", "cleanenv", "forkloop"])
async def test_the_mock_agents_grandchildren_die_with_it(runner: LocalRunner, tmp_path: Path, kind: str) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    text = await said(connection, sink, f"mock: grandchild {kind}")
    pid = int(re.findall(r"\d+", text)[-1])
    await connection.close(force=False)
    assert not Path(f"/proc/{pid}").exists()


async def test_a_hanging_mock_is_stopped_by_an_interrupt(runner: LocalRunner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.prompt(Prompt(prompt_id="p", turn_id="t", parts=(TextPart(text="mock: hang hi"),)))
    await until(lambda: sink.texts() == ["hi"])
    await connection.interrupt()
    await until(lambda: sink.end is not None)
    ended = TurnEndedData(phase="ended", turn_id="t", outcome="interrupted", stop_reason="interrupted")
    assert sink.drafts[-1].data == ended


async def test_a_crash_of_the_mock_fails_the_turn_only(runner: LocalRunner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await said(connection, sink, "mock: stderr 100\nmock: crash 9")
    await until(lambda: sink.end is not None)
    assert sink.end is not None
    assert (sink.end.expected, sink.end.exit_code) == (False, 9)
    assert sink.end.stderr is not None
    assert sink.end.stderr.truncated
    assert sink.types()[-2:] == ["error", "turn.ended"]


def test_everything_works_on_uvloop_too(tmp_path: Path) -> None:
    async def scenario() -> str:
        runner, sink = runner_of(HERE), Recorder()
        connection = await runner.connect(spec_in(tmp_path), sink)
        text = await said(connection, sink, "mock: say hello")
        await connection.freeze()
        await connection.thaw()
        await runner.close()
        return text

    assert uvloop.run(scenario()) == "hello"
