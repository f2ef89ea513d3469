"""The contract of a runner and its connections, with a real agent, in memory and over a link of bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from ostler.base.errors import (
    AgentExited,
    AgentLost,
    AgentNotInstalled,
    AgentStartFailed,
    FileMissing,
    InstallFailed,
    SessionBusy,
    Unprocessable,
    UnsupportedAgent,
)
from ostler.link.protocol import Connection, Runner
from ostler.wire.agents import Model
from ostler.wire.events import PermissionData, QuestionData
from ostler.wire.parts import ImagePart, TextPart
from ostler.wire.running import Accepted, PermissionAnswer, ProcessRef, Prompt, QuestionAnswer
from tests.support.loopback import Loopback, over_socket
from tests.support.patience import until
from tests.support.runner_parts import (
    HERE,
    Desk,
    Leash,
    OfferingAdapter,
    Recorder,
    TinyAdapter,
    local_runner,
    prompt,
    spec_in,
    state_of,
)

Linked = Callable[[Runner], AbstractAsyncContextManager[Runner]]


@asynccontextmanager
async def in_memory(runner: Runner) -> AsyncIterator[Runner]:
    yield runner


@asynccontextmanager
async def over_loopback(runner: Runner) -> AsyncIterator[Runner]:
    link = Loopback(runner)
    try:
        yield link.runner
    finally:
        await link.close()


@asynccontextmanager
async def by_websocket(runner: Runner) -> AsyncIterator[Runner]:
    async with over_socket(runner, None) as server:
        yield server.runner


@pytest.fixture(params=[in_memory, over_loopback, by_websocket], ids=["memory", "loopback", "websocket"])
def linked(request: pytest.FixtureRequest) -> Linked:
    chosen: Linked = request.param
    return chosen


@pytest.fixture
def leash(tmp_path: Path) -> Iterator[Leash]:
    made = Leash(tmp_path / "leash")
    yield made
    made.close()


@pytest.fixture
async def runner(linked: Linked, tmp_path: Path) -> AsyncIterator[Runner]:
    local = local_runner(tmp_path)
    async with linked(local) as seen:
        yield seen
        await local.close()


async def turn(connection: Connection, sink: Recorder, text: str) -> str:
    """The text of one whole turn."""
    ends, texts = sink.turns_ended(), len(sink.texts())
    await connection.prompt(prompt(text))
    await until(lambda: sink.turns_ended() > ends)
    return "".join(sink.texts()[texts:])


async def raised(work: Awaitable[object]) -> tuple[type[BaseException], str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the caller looks at it
        await work
    return caught.type, str(caught.value)


async def test_a_prompt_gives_the_events_of_one_turn(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    assert await turn(connection, sink, "mock: say hello") == "hello"
    assert sink.types()[0] == "session.info"
    assert sink.types()[-1] == "turn.ended"
    assert sink.report is not None
    assert sink.report.process is not None
    assert sink.report.remembers
    assert (await runner.stats()).processes == 1


async def test_an_image_arrives_with_its_prompt_as_a_file_of_the_agents_home(runner: Runner, tmp_path: Path) -> None:
    sink, spec, servers = Recorder(), spec_in(tmp_path), "/only/on/the/server/dot.png"
    connection = await runner.connect(spec, sink)
    parts = (TextPart(text="mock: say seen"), ImagePart(path=servers))
    await connection.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts, images={servers: b"\x89PNG\xff"}))
    await until(lambda: sink.turns_ended() == 1)
    assert "".join(sink.texts()) == "I got 1 image.\nseen"
    assert Path(spec.home, ".ostler/images/prm_1/0.png").read_bytes() == b"\x89PNG\xff"


async def test_a_second_prompt_during_a_turn_is_refused(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.prompt(prompt("mock: hang hi"))
    kind, text = await raised(connection.prompt(prompt("mock: say no", "prm_2", "trn_2")))
    assert (kind, "trn_1" in text) == (SessionBusy, True)


async def test_a_turn_is_steered_where_the_agent_can(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path, "tiny"), sink)
    assert not await connection.steer(prompt("too early"))
    await connection.prompt(prompt("say before\nwait"))
    await until(lambda: sink.texts() == ["before"])
    assert await connection.steer(prompt("more", "prm_2"))
    assert not await connection.steer(prompt("no", "prm_3"))


async def test_an_interrupt_ends_the_turn_and_the_agent_goes_on(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.prompt(prompt("mock: wait 600"))
    await connection.interrupt()
    await until(lambda: sink.turns_ended() == 1)
    assert getattr(sink.drafts[-1].data, "outcome", None) == "interrupted"
    assert await turn(connection, sink, "mock: say again") == "again"


async def test_asks_are_answered(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.prompt(prompt("mock: permission write"))
    await until(lambda: "permission.requested" in sink.types())
    (permission,) = [draft.data for draft in sink.drafts if isinstance(draft.data, PermissionData)]
    await connection.answer(PermissionAnswer(ask_id=permission.permission_id, allow=True))
    await until(lambda: sink.turns_ended() == 1)
    await connection.prompt(prompt("mock: question Tea or coffee? | tea | coffee", "prm_2", "trn_2"))
    await until(lambda: "question.requested" in sink.types())
    (question,) = [draft.data for draft in sink.drafts if isinstance(draft.data, QuestionData)]
    await connection.answer(QuestionAnswer(ask_id=question.question_id, answers=(("tea",),)))
    await until(lambda: sink.turns_ended() == 2)
    assert "tea" in "".join(sink.texts())


async def test_a_frozen_agent_stands_still_until_it_is_thawed(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    assert sink.report is not None
    assert sink.report.process is not None
    await connection.freeze()
    assert state_of(sink.report.process.pid) == "T"
    await connection.thaw()
    assert await turn(connection, sink, "mock: say thawed") == "thawed"


@pytest.mark.parametrize("force", [False, True], ids=["gently", "by force"])
async def test_a_closed_agent_is_gone_and_said_to_be(runner: Runner, tmp_path: Path, force: bool) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.close(force=force)
    assert sink.end is not None
    assert sink.end.expected
    await connection.close(force=force)
    kind, _ = await raised(connection.prompt(prompt("mock: say no")))
    assert kind is AgentExited


async def test_an_agent_that_dies_is_reported_once_with_its_last_words(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    await connection.prompt(prompt("mock: crash 3"))
    await until(lambda: sink.end is not None)
    assert sink.end is not None
    assert (sink.end.expected, sink.end.exit_code) == (False, 3)
    assert getattr(sink.drafts[-1].data, "outcome", None) == "failed"


async def test_a_runner_waits_until_events_are_durable(runner: Runner, tmp_path: Path) -> None:
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path), sink)
    sink.pause = 0.05
    text = await turn(connection, sink, "mock: stream 50 words 1000/s")
    assert text
    assert sink.most_at_once == 1


async def test_another_server_goes_on_with_what_runs(linked: Linked, tmp_path: Path) -> None:
    first, sink = local_runner(tmp_path), Recorder()
    async with linked(first) as seen:
        connection = await seen.connect(spec_in(tmp_path), sink)
        assert await turn(connection, sink, "mock: say one") == "one"
        await connection.prompt(prompt("mock: permission write", "prm_2", "trn_2"))
        await until(lambda: "permission.requested" in sink.types())
        await seen.detach()
    second, later = local_runner(tmp_path), Recorder()
    async with linked(second) as seen:
        (survivor,) = await seen.surviving()
        assert survivor == ProcessRef(session_id="ses_1", start=1)
        adopted = await seen.adopt(survivor, later, known=sink.steps[-1])
        assert later.report is not None
        assert (later.report.heard, len(later.report.open_asks)) == (("prm_1", "prm_2"), 1)
        await adopted.answer(PermissionAnswer(ask_id=later.report.open_asks[0], allow=True))
        await until(lambda: later.turns_ended() == 1)
        assert "one" not in later.texts()
        await seen.close()
        assert later.end is not None


async def test_the_end_of_a_process_that_was_still_starting_is_reported(
    linked: Linked, tmp_path: Path, leash: Leash
) -> None:
    adapters = [TinyAdapter("sh", "-c", f"exec 9>{leash.path}; echo up >&9; sleep 600")]
    first, later = local_runner(tmp_path, HERE, adapters), Recorder()
    async with linked(first) as seen:
        starting = asyncio.create_task(seen.connect(spec_in(tmp_path, "tiny"), Recorder()))
        await until(lambda: leash.has(b"up", 1))
        await seen.detach()
        await asyncio.wait([starting])
        assert starting.exception() is not None
    second = local_runner(tmp_path, HERE, adapters)
    async with linked(second) as seen:
        (survivor,) = await seen.surviving()
        adopted = await seen.adopt(survivor, later, known=0)
        await adopted.close(force=True)
        await until(lambda: later.end is not None)
        await seen.close()


async def test_what_nobody_wants_is_discarded(linked: Linked, tmp_path: Path) -> None:
    first, sink = local_runner(tmp_path), Recorder()
    async with linked(first) as seen:
        await seen.connect(spec_in(tmp_path), sink)
        await seen.detach()
    second = local_runner(tmp_path)
    async with linked(second) as seen:
        (survivor,) = await seen.surviving()
        await seen.discard(survivor)
        assert await seen.surviving() == []
        kind, _ = await raised(seen.adopt(survivor, Recorder(), known=0))
        assert kind is AgentLost
        await seen.close()


async def test_a_start_that_is_given_up_leaves_nothing(linked: Linked, tmp_path: Path, leash: Leash) -> None:
    adapter = TinyAdapter("sh", "-c", f"exec 9>{leash.path}; echo up >&9; setsid sleep 600 & sleep 600")
    local = local_runner(tmp_path, HERE, [adapter])
    async with linked(local) as seen:
        starting = asyncio.create_task(seen.connect(spec_in(tmp_path, "tiny"), Recorder()))
        await until(lambda: leash.has(b"up", 1))
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert leash.all_dead()
        await seen.close()


async def test_errors_arrive_as_they_were_raised(linked: Linked, tmp_path: Path) -> None:
    local = local_runner(tmp_path, "nowhere")
    async with linked(local) as seen:
        for work in (seen.validate, lambda spec: seen.connect(spec, Recorder())):
            kind, text = await raised(work(spec_in(tmp_path, "nobody")))
            assert (kind, text) == (UnsupportedAgent, "There is no agent 'nobody'. Known agents: mock, tiny.")
            kind, text = await raised(work(spec_in(tmp_path, "tiny")))
            assert (kind, "looked in nowhere" in text) == (AgentNotInstalled, True)
        assert (await raised(seen.install("tiny", None)))[0] is InstallFailed
        assert (await seen.validate(spec_in(tmp_path))).agent == "mock"
        with pytest.raises(AgentStartFailed) as caught:
            await seen.connect(spec_in(tmp_path, cwd="/no/such/folder"), Recorder())
        assert set(caught.value.fields) == {"agent", "reason", "exit_code", "stderr"}
        await seen.close()


async def test_a_session_that_names_no_folder_has_one_on_the_runner(linked: Linked, tmp_path: Path) -> None:
    local = local_runner(tmp_path)
    async with linked(local) as seen:
        accepted = await seen.validate(spec_in(tmp_path, cwd="", home=""))
        assert accepted == Accepted(agent="mock", folder=str(tmp_path / "sessions" / "ses_1" / "workspace"))
        assert Path(accepted.folder).is_dir()
        sink = Recorder()
        connection = await seen.connect(spec_in(tmp_path, cwd="", home=""), sink)
        await connection.prompt(prompt("mock: write here.txt one"))
        await until(lambda: sink.turns_ended() == 1)
        assert [path.name for path in Path(accepted.folder).iterdir()] == ["here.txt"]
        assert Path(accepted.folder).with_name("home").is_dir()
        await seen.close()


async def test_a_session_with_a_folder_gets_no_other(linked: Linked, tmp_path: Path) -> None:
    async with linked(local := local_runner(tmp_path)) as seen:
        accepted = await seen.validate(spec_in(tmp_path))
        assert not Path(accepted.folder).parent.exists()
        await local.close()


async def test_an_image_on_the_runners_disk_is_read_there(runner: Runner, tmp_path: Path) -> None:
    picture = tmp_path / "dot.png"
    picture.write_bytes(b"\x89PNG")
    sink = Recorder()
    connection = await runner.connect(spec_in(tmp_path, permission_mode="bypass"), sink)
    parts = (TextPart(text="mock: run cp ~/.ostler/images/*/0.png seen.png"), ImagePart(path=str(picture)))
    await connection.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts))
    await until(lambda: sink.turns_ended() == 1)
    assert (tmp_path / "seen.png").read_bytes() == b"\x89PNG"
    gone = ImagePart(path=str(tmp_path / "gone.png"))
    with pytest.raises(FileMissing):
        await connection.prompt(Prompt(prompt_id="prm_2", turn_id="trn_2", parts=(gone,)))
    await connection.close(force=True)


async def test_a_runner_reports_its_agents_and_what_they_offer(linked: Linked, tmp_path: Path) -> None:
    desk, local = Desk(), local_runner(tmp_path, adapters=[OfferingAdapter()])
    async with linked(local) as seen:
        await seen.register(desk)
        assert [(agent.id, agent.models) for agent in desk.agents.values()] == [("tiny", ())]
        await seen.connect(spec_in(tmp_path, "tiny"), Recorder())
        await until(lambda: desk.agents["tiny"].models == (Model(id="m1", name="M1"),))
        await seen.close()


async def test_the_catalogue_arrives_whole(linked: Linked, tmp_path: Path) -> None:
    local = local_runner(tmp_path)
    async with linked(local) as seen:
        assert await seen.catalogue() == await local.catalogue()
        assert await seen.describe("small") == await local.describe("tiny")
        assert (await seen.install("mock", None)).agent == "mock"
        assert (await raised(seen.install("mock", None, reinstall=True)))[0] is Unprocessable
        await seen.close()
