"""The SDK against a running server."""

import asyncio
import re
from pathlib import Path

import pytest

from ostler import __version__
from ostler.client import AsyncClient, Client, OstlerApiError, QuestionUnanswered, TurnTimeout
from ostler.client.errors import BadAnswer
from ostler.wire.events import ItemDelta, PermissionData, QuestionData, QuestionResolved
from ostler.wire.parts import TextInput, TextPart
from ostler.wire.sessions import PermissionReply
from tests.client.cutting_proxy import cutting_proxy
from tests.client.scripted import reply, scripted_server
from tests.support.serving import RunningServer, running_server

ASKING = "mock: say Hello\nmock: permission dig\nmock: say done"


async def test_the_turn_of_a_prompt_has_its_own_events_and_no_others(server: RunningServer) -> None:
    async with AsyncClient(server.url, token="unused") as ostler:
        s = await ostler.sessions.create(agent="mock")
        for words in ("First.", "Second."):
            turn = await s.start(f"mock: say {words}")
            seen = [event async for event in turn.events()]
            assert (seen[0].type, seen[-1].type) == ("turn.started", "turn.ended")
            assert [event.type for event in seen].count("turn.started") == 1
            assert (turn.text, turn.outcome) == (words, "completed")


def test_a_loop_that_leaves_at_the_end_of_a_turn_hears_the_next_answer_next(server: RunningServer) -> None:
    said = []
    with Client(server.url) as ostler:
        s = ostler.sessions.create(agent="mock")
        for words in ("First.", "Second."):
            turn = s.start(f"mock: say {words}")
            for event in turn.events():
                if event.type == "turn.ended":
                    break
            said.append(turn.text)
    assert said == ["First.", "Second."]


def test_a_turn_that_waited_in_the_queue_is_told_from_the_one_before_it(server: RunningServer) -> None:
    with Client(server.url) as ostler:
        s = ostler.sessions.create(agent="mock")
        first = s.start("mock: permission dig\nmock: say First.")
        second = s.start("mock: say Second.")
        assert second.receipt.disposition == "queued"
        assert first.wait(lambda _ask: "once").text.endswith("First.")
        assert (second.wait().text, first.turn_id == second.turn_id) == ("Second.", False)


def test_a_waiting_prompt_that_another_client_takes_back_is_waited_for_no_longer(server: RunningServer) -> None:
    with Client(server.url) as ostler, Client(server.url) as other:
        s = ostler.sessions.create(agent="mock")
        s.start("mock: permission dig")
        before = s.start("mock: say before")
        turn = s.start("mock: say never")
        other.sessions.unqueue(s.id, before.receipt.prompt_id)
        other.sessions.unqueue(s.id, turn.receipt.prompt_id)
        assert before.wait().outcome == "interrupted"
        turn.wait()
        assert (turn.outcome, turn.turn_id, "taken back" in str(turn.error)) == ("interrupted", None, True)


@pytest.mark.parametrize("prompt", [ASKING, [TextInput(text=ASKING)]], ids=["text", "parts"])
def test_run_decides_permissions_and_gives_the_whole_turn(server: RunningServer, prompt: str | list[TextInput]) -> None:
    with Client(server.url) as ostler:
        s = ostler.sessions.create(agent="mock")
        turn = s.run(prompt, on_permission=lambda ask: "once" if ask.action == "dig" else "reject")
        assert (turn.text.startswith("Hello"), turn.text.endswith("done"), turn.outcome) == (True, True, "completed")
        assert s.stop().status == "stopped"
        assert [event.sequence for event in s.events()] == list(range(1, s.info.last_sequence + 1))


def test_run_goes_on_when_somebody_else_has_decided_first(server: RunningServer) -> None:
    with Client(server.url) as ostler, Client(server.url) as other:
        s = ostler.sessions.create(agent="mock")
        theirs = other.sessions.open(s.id)

        def late(ask: PermissionData) -> PermissionReply:
            theirs.reply(ask.permission_id, "once")
            return "reject"

        def later(ask: QuestionData) -> list[list[str]]:
            theirs.answer(ask.question_id, [["tea"]])
            return [["coffee"]]

        script = "mock: permission dig\nmock: question Tea? | tea | coffee\nmock: say Over."
        turn = s.run(script, on_permission=late, on_question=later)
        assert (turn.outcome, turn.text.endswith("Over."), "Rejected" in turn.text) == ("completed", True, False)


async def test_run_takes_a_decision_that_has_to_be_waited_for(server: RunningServer) -> None:
    async def decide(_ask: PermissionData) -> PermissionReply:
        await asyncio.sleep(0)
        return "reject"

    async with AsyncClient(server.url) as ostler:
        s = await ostler.sessions.create(agent="mock")
        assert "Rejected" in (await s.run("mock: permission dig", on_permission=decide)).text
        failed = await s.run("mock: error Lame horse")
        assert (failed.outcome, "Lame horse" in (failed.error or "")) == ("failed", True)


def test_run_answers_questions_or_declines_them(server: RunningServer) -> None:
    script = "mock: question Tea or coffee? | tea | coffee\nmock: say Over."
    with Client(server.url) as ostler:
        s = ostler.sessions.create(agent="mock")
        s.run(script, on_question=lambda ask: [["coffee" if "Tea" in ask.prompt else "tea"]])
        s.run(script, on_question=lambda _ask: None)
        s.stop()
        asked = [event.data for event in s.events() if isinstance(event, QuestionResolved)]
        assert [(each.status, each.answers) for each in asked] == [("answered", (("coffee",),)), ("rejected", None)]


def test_a_question_that_nothing_answers_is_raised_at_once_and_the_turn_can_be_waited_for_again(
    server: RunningServer,
) -> None:
    with Client(server.url) as ostler:
        s = ostler.sessions.create(agent="mock")
        turn = s.start("mock: question Tea? | tea | coffee\nmock: say Over.")
        with pytest.raises(QuestionUnanswered, match="on_question") as asked:
            turn.wait()
        s.answer(asked.value.question_id, [["tea"]])
        assert turn.wait().outcome == "completed"
        assert "Over." in turn.text


async def test_a_turn_is_waited_for_no_longer_than_asked(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        s = await ostler.sessions.create(agent="mock")
        turn = await s.start("mock: say Begun.\nmock: wait 600")
        with pytest.raises(TurnTimeout, match="goes on"):
            await turn.wait(timeout=0.5)
        assert turn.outcome is None
        await s.interrupt()
        assert (await turn.wait()).outcome == "interrupted"
    with Client(server.url) as ostler:
        with pytest.raises(TurnTimeout):
            ostler.sessions.open(s.id).run("mock: wait 600", timeout=0.5)
        ostler.sessions.cancel(s.id)


def test_a_turn_tells_which_files_it_changed(server: RunningServer) -> None:
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="mock", permission_mode="bypass")
        turn = session.run("mock: write a.md one\\n\nmock: write b.md one\\n\nmock: edit a.md one -> two")
        assert turn.files == ("a.md", "b.md")
        assert session.run("mock: say nothing changed").files == ()


async def test_a_turn_ends_when_its_session_does(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        s = await ostler.sessions.create(agent="mock")
        turn = await s.start("mock: wait 60")
        await s.cancel()
        assert (await turn.wait()).outcome == "interrupted"


async def test_a_handle_has_the_session_s_verbs_and_keeps_its_state(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        await ostler.sessions.create("mock", key="verbs", labels={"a": "b"})
        s = await ostler.sessions.open("verbs")
        assert (s.key, s.info.labels) == ("verbs", {"a": "b"})
        assert (await s.update(title="T")).title == s.info.title == "T"
        assert (await s.pause()).status == s.info.status == "paused"
        await s.resume()
        await s.send("mock: question Tea? | yes | no\nmock: question More?\nmock: wait 60")
        await s.send("later")
        (entry,) = (await s.queue()).entries
        await s.unqueue(entry.prompt_id)
        async for event in s.events():
            match event.type:
                case "question.requested" if event.data.options:  # type: ignore[union-attr] # narrowed by the type's name
                    await s.answer(event.data.question_id, ["yes"])  # type: ignore[union-attr] # narrowed by the type's name
                case "question.requested":
                    await s.reject(event.data.question_id)  # type: ignore[union-attr] # narrowed by the type's name
                    await s.interrupt()
                case "turn.ended":
                    break
        assert [turn.outcome for turn in (await s.turns()).turns] == ["interrupted"]
        assert (await s.messages()).messages[0].item.role == "user"
        await s.cancel()
        await s.delete()
        with pytest.raises(OstlerApiError) as raised:
            await s.refresh()
        assert (raised.value.status, raised.value.code) == (404, "session_not_found")


async def test_raw_frames_come_only_when_asked_for(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        s = await ostler.sessions.create("mock")
        await s.send("mock: say hi")
        await s.stop()
        plain = [event async for event in s.events() if isinstance(event, ItemDelta)]
        raw = [event async for event in s.events(include_raw=True) if isinstance(event, ItemDelta)]
        assert ([event.raw for event in plain if event.raw], all(event.raw for event in raw)) == ([], True)


async def test_the_answer_of_a_proxy_is_told_by_its_status_and_not_read_as_ours() -> None:
    page = reply(502, "<html>Bad gateway</html>", "text/html")
    async with scripted_server([lambda _: page]) as server, AsyncClient(server.url) as ostler:
        with pytest.raises(OstlerApiError) as raised:
            await ostler.sessions.list()
    assert (raised.value.status, raised.value.detail) == (
        502,
        "The server answered with status 502, and not as Ostler does. Check the address, and whatever stands between.",
    )


async def test_a_page_is_no_word_that_something_was_deleted() -> None:
    page = reply(200, "<html>Welcome</html>", "text/html")
    async with scripted_server([lambda _: page]) as server, AsyncClient(server.url) as ostler:
        with pytest.raises(BadAnswer, match="there should be nothing in it"):
            await ostler.sessions.delete("ses_1")
        with pytest.raises(BadAnswer):
            await ostler.agents.list()


@pytest.mark.parametrize(("server_version", "older"), [("0.0.9", "server"), ("7.0.0", "client")])
async def test_an_answer_that_another_version_gave_is_told_with_both(server_version: str, older: str) -> None:
    odd = reply(200, {"items": 5}).replace(b"\r\n", f"\r\nOstler-Version: {server_version}\r\n".encode(), 1)
    sentence = f"This client is of Ostler {__version__} and the server of {server_version}: upgrade the {older}."
    async with scripted_server([lambda _: odd]) as server, AsyncClient(server.url) as ostler:
        with pytest.raises(BadAnswer, match=re.escape(sentence)):
            await ostler.sessions.list()
        with Client(server.url) as blocking, pytest.raises(BadAnswer, match=re.escape(sentence)):
            await asyncio.to_thread(blocking.sessions.list)


async def test_the_project_s_stream_shows_all_sessions(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        page = await ostler.events.project(limit=1)
        stream = ostler.events.stream_project(offset=page.next_offset)
        one, two = [await ostler.sessions.create("mock") for _ in range(2)]
        wanted = {one.id, two.id}
        async with asyncio.timeout(60):
            async for event in stream:
                wanted.discard(event.session_id)
                if not wanted:
                    break


async def test_bad_input_names_the_field(server: RunningServer) -> None:
    async with AsyncClient(server.url) as ostler:
        with pytest.raises(OstlerApiError) as raised:
            await ostler.sessions.create("mock", key="not a key!")
        assert raised.value.status in {400, 422}
        assert "key" in raised.value.detail + "".join(raised.value.errors)


@pytest.mark.parametrize("seed", range(3))
async def test_through_a_proxy_that_cuts_connections_every_event_comes_once(server: RunningServer, seed: int) -> None:
    async with AsyncClient(server.url) as ostler, cutting_proxy(server.port, seed=seed, most=60_000) as bad_url:
        s = await ostler.sessions.create("mock")
        await s.send("mock: stream 1500 words max\nmock: say end")
        async with AsyncClient(bad_url) as unlucky:
            numbers, words = [], ""
            async with asyncio.timeout(90):
                async for event in unlucky.events.stream(s.id):
                    numbers.append(event.sequence)
                    if isinstance(event, ItemDelta) and isinstance(event.data.delta, TextPart):
                        words += event.data.delta.text
                    if event.type == "turn.ended":
                        break
    assert numbers == list(range(1, len(numbers) + 1))
    assert [word for word in words.split() if word.startswith("w")] == [f"w{number}" for number in range(1, 1501)]


async def test_a_stream_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    numbers, ends = [], asyncio.Queue[int]()

    async def read(url: str, session: str) -> None:
        async with AsyncClient(url) as client:
            await client.system.health()
            async for event in client.events.stream(session):
                numbers.append(event.sequence)
                if event.type == "turn.ended":
                    ends.put_nowait(event.sequence)

    with running_server(tmp_path / "state") as first:
        port, url = str(first.port), first.url
        async with AsyncClient(url) as ostler:
            s = await ostler.sessions.create("mock")
            await s.send("mock: say one")
            reading = asyncio.create_task(read(url, s.id))
            await asyncio.wait_for(ends.get(), 30)
    with running_server(tmp_path / "state", "--port", port):
        async with AsyncClient(url) as ostler:
            await ostler.sessions.send(s.id, "mock: say two")
            await asyncio.wait_for(ends.get(), 30)
            await ostler.sessions.stop(s.id)
        await asyncio.wait_for(reading, 60)
    assert numbers == list(range(1, len(numbers) + 1))
