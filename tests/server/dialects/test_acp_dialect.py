"""Editors work with every session through the Agent Client Protocol, on each way to reach the server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import acp
import httpx
import pytest

from tests.support.acp_client import DOORS, Editor, connected
from tests.support.patience import until
from tests.support.serving import RunningServer
from tests.support.talk import Talk, stream

SECONDS = 60.0

ANSWERING = "acp.Connection.request"
"""The name of a task of the client that answers a request."""


@pytest.fixture
def editor() -> Editor:
    return Editor()


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def agent(server: RunningServer, door: str, editor: Editor, tmp_path: Path) -> AsyncIterator[Any]:
    async with connected(server, door, editor, tmp_path / "home") as connection:
        yield connection


async def prompt(agent: Any, session_id: str, text: str) -> str:
    async with asyncio.timeout(SECONDS):
        answer = await agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
    return str(answer.stop_reason)


async def new(agent: Any, cwd: Path) -> str:
    async with asyncio.timeout(SECONDS):
        return str((await agent.new_session(cwd=str(cwd), mcp_servers=[])).session_id)


async def test_a_prompt_streams_thoughts_text_and_ends(agent: Any, editor: Editor, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    assert await prompt(agent, session, "mock: think Hm.\nmock: say Hello there.") == "end_turn"
    assert (editor.text("agent_thought_chunk"), editor.text()) == ("Hm.", "Hello there.")
    assert editor.of_kind("user_message_chunk") == []


async def test_a_tool_call_is_told_from_its_start_to_its_result(agent: Any, editor: Editor, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    await agent.set_config_option(session_id=session, config_id="permission_mode", value="bypass")
    await prompt(agent, session, "mock: write notes.md one\\n\nmock: edit notes.md one -> two\nmock: run echo hi")
    calls = editor.of_kind("tool_call")
    assert [(call["title"], call["kind"], call["status"]) for call in calls] == [
        ("write notes.md", "edit", "in_progress"),
        ("edit notes.md", "edit", "in_progress"),
        ("shell echo hi", "execute", "in_progress"),
    ]
    shown = editor.calls()
    edited, ran = shown[calls[1]["toolCallId"]], shown[calls[2]["toolCallId"]]
    diff = {"type": "diff", "path": str(tmp_path / "notes.md"), "oldText": "one\n", "newText": "two\n"}
    assert (edited["content"][0], edited["content"][1]["type"]) == (diff, "content")
    assert (ran["status"], ran["content"][0]["content"]["text"]) == ("completed", "hi\n")
    ended = [
        update["toolCallId"] for update in editor.of_kind("tool_call_update") if update.get("status") == "completed"
    ]
    assert ended == [call["toolCallId"] for call in calls]


async def test_plan_usage_and_title_are_told(agent: Any, editor: Editor, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    await prompt(agent, session, "mock: plan Read | Write\nmock: usage 10 20 0.5\nmock: title Tea")
    assert editor.of_kind("plan")[0]["entries"][1] == {"content": "Write", "priority": "medium", "status": "pending"}
    assert editor.of_kind("usage_update")[0]["cost"] == {"amount": 0.5, "currency": "USD"}
    assert editor.of_kind("session_info_update")[-1]["title"] == "Tea"


@pytest.mark.parametrize(("name", "said"), [("Allow", "done"), ("Reject", "")])
async def test_a_permission_is_asked_of_the_editor(
    agent: Any, editor: Editor, tmp_path: Path, name: str, said: str
) -> None:
    editor.choose = lambda _: name
    session = await new(agent, tmp_path)
    await prompt(agent, session, "mock: permission delete the notes\nmock: say done")
    assert editor.asked == [{"title": "delete the notes", "names": ["Allow", "Allow for this session", "Reject"]}]
    assert ("done" in editor.text()) == bool(said)


async def test_questions_become_choices_for_an_editor_without_forms(agent: Any, editor: Editor, tmp_path: Path) -> None:
    editor.choose = lambda names: names[1]
    session = await new(agent, tmp_path)
    await prompt(agent, session, "mock: questions Which size? | S | M ;; Which cup? | big | small")
    assert [asked["title"] for asked in editor.asked] == ["Which size?", "Which cup?"]
    assert "Which size? You answered: M\nWhich cup? You answered: small" in editor.text()


async def test_a_cancelled_turn_ends_as_cancelled_and_the_session_goes_on(
    agent: Any, editor: Editor, tmp_path: Path
) -> None:
    session = await new(agent, tmp_path)
    running = asyncio.create_task(prompt(agent, session, "mock: say begun\nmock: wait 60"))
    await until(lambda: "begun" in editor.text())
    await agent.cancel(session_id=session)
    assert await running == "cancelled"
    assert await prompt(agent, session, "mock: say again") == "end_turn"


async def test_a_failed_turn_is_an_error_that_says_why(agent: Any, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    with pytest.raises(acp.RequestError, match="The model is overloaded"):
        await prompt(agent, session, "mock: error The model is overloaded")


async def test_the_mode_and_the_model_are_changed(agent: Any, editor: Editor, tmp_path: Path) -> None:
    opened = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
    session = opened.session_id
    assert opened.modes.current_mode_id == "build"
    await prompt(agent, session, "mock: say one")
    await agent.set_session_mode(session_id=session, mode_id="plan")
    changed = await agent.set_config_option(session_id=session, config_id="model", value="mock-large")
    current = {option.id: option.current_value for option in changed.config_options}
    assert (current["mode"], current["model"]) == ("plan", "mock-large")
    await prompt(agent, session, "mock: about\nmock: recall")
    await until(lambda: {"sessionUpdate": "current_mode_update", "currentModeId": "plan"} in editor.updates)
    assert "mock-large" in editor.text()


async def test_a_session_started_elsewhere_is_listed_loaded_and_gone_on_with(
    agent: Any, editor: Editor, api: httpx.Client, tmp_path: Path
) -> None:
    talk = Talk(api, cwd=str(tmp_path), title="Elsewhere")
    talk.turn("mock: say Hello from elsewhere.")
    listed = await agent.list_sessions(cwd=str(tmp_path))
    assert [(found.session_id, found.title) for found in listed.sessions] == [(talk.id, "Elsewhere")]
    async with asyncio.timeout(SECONDS):
        await agent.load_session(cwd=str(tmp_path), session_id=talk.id, mcp_servers=[])
    await until(lambda: editor.text() == "Hello from elsewhere.")
    assert editor.text("user_message_chunk") == "mock: say Hello from elsewhere."
    assert await prompt(agent, talk.id, "mock: say More.") == "end_turn"
    assert editor.text() == "Hello from elsewhere.More."


async def test_a_resumed_session_is_not_replayed_but_followed(
    agent: Any, editor: Editor, api: httpx.Client, tmp_path: Path
) -> None:
    talk = Talk(api, cwd=str(tmp_path))
    talk.turn("mock: say Before.")
    await agent.resume_session(cwd=str(tmp_path), session_id=talk.id, mcp_servers=[])
    talk.turn("mock: say After.")
    await until(lambda: editor.text() == "After.")
    assert editor.text("user_message_chunk") == "mock: say After."


TOOLS = {"name": "tools", "command": "/bin/true", "args": [], "env": []}
OTHERS = {"name": "others", "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": []}


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_has_the_tool_servers_of_the_editor_that_opened_it_last(
    agent: Any, api: httpx.Client, tmp_path: Path, method: str
) -> None:
    talk = Talk(api, cwd=str(tmp_path))
    talk.turn("mock: say Before.")
    where = {"sessionId": talk.id, "cwd": str(tmp_path)}
    for given, names in [([TOOLS], ["tools"]), ([], ["tools"]), ([TOOLS, OTHERS], ["others", "tools"])]:
        await agent._conn.send_request(method, {**where, "mcpServers": given})
        assert sorted(talk.get()["mcpServers"]) == names
    assert await prompt(agent, talk.id, "mock: say After.") == "end_turn"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_tool_servers_that_a_session_cannot_have_now_are_refused_by_name(
    agent: Any, api: httpx.Client, tmp_path: Path, method: str
) -> None:
    talk = Talk(api, cwd=str(tmp_path))
    where = {"sessionId": talk.id, "cwd": str(tmp_path)}
    with pytest.raises(acp.RequestError, match="mcpServers 'x'"):
        await agent._conn.send_request(method, {**where, "mcpServers": [{"name": "x", "type": "smoke"}]})
    talk.send("mock: wait 600")
    with pytest.raises(acp.RequestError, match="mcpServers cannot be changed now"):
        await agent._conn.send_request(method, {**where, "mcpServers": [TOOLS]})
    await agent._conn.send_request(method, {**where, "mcpServers": []})
    talk.post("/stop")
    await agent._conn.send_request(method, {**where, "mcpServers": [TOOLS]})
    assert talk.get()["mcpServers"] == []


async def test_a_closed_session_can_be_loaded_again(agent: Any, editor: Editor, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    await prompt(agent, session, "mock: say One.")
    await agent.close_session(session_id=session)
    await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
    await until(lambda: editor.text() == "One.One.")


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
        ("session/new", {}, -32602),
        ("session/new", {"cwd": "/", "_meta": {"ostler": {"agent": "nobody"}}}, -32002),
        ("session/new", {"cwd": "/", "_meta": {"ostler": {"permission_mode": "yolo"}}}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": [{"name": "x", "type": "smoke"}]}, -32602),
        ("session/load", {"sessionId": "nobody", "cwd": "/", "mcpServers": []}, -32002),
        ("session/resume", {"sessionId": 5}, -32602),
        ("session/prompt", {"sessionId": "nobody", "prompt": []}, -32002),
        ("session/list", {"cursor": "later"}, -32602),
        ("session/dance", {}, -32601),
    ],
    ids=str,
)
async def test_a_bad_request_gets_the_protocol_s_own_error(
    agent: Any, api: httpx.Client, method: str, params: dict[str, Any], code: int
) -> None:
    before = api.get("/sessions").json()["total"]
    with pytest.raises(acp.RequestError) as refused:
        await agent._conn.send_request(method, params)
    assert refused.value.code == code
    assert api.get("/sessions").json()["total"] == before


async def test_a_bad_prompt_or_setting_of_a_session_is_refused(agent: Any, tmp_path: Path) -> None:
    session = await new(agent, tmp_path)
    bad: list[tuple[str, dict[str, Any]]] = [
        ("session/prompt", {"prompt": []}),
        ("session/prompt", {"prompt": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}),
        ("session/prompt", {"prompt": [{"type": "image", "data": "?", "mimeType": "image/png"}]}),
        ("session/set_mode", {"modeId": "dance"}),
        ("session/set_config_option", {"configId": "colour", "value": "red"}),
        ("session/set_config_option", {"configId": "model", "value": True}),
        ("session/set_config_option", {"configId": "permission_mode", "value": "yolo"}),
    ]
    for method, params in bad:
        with pytest.raises(acp.RequestError) as refused:
            await agent._conn.send_request(method, {"sessionId": session, **params})
        assert refused.value.code == -32602, method


async def test_a_form_is_filled_by_an_editor_that_has_forms(
    server: RunningServer, door: str, editor: Editor, tmp_path: Path
) -> None:
    editor.fill = {"q0": "S", "q1": ["milk", "sugar"]}
    async with connected(server, door, editor, tmp_path / "home", forms=True) as agent:
        session = await new(agent, tmp_path)
        await prompt(agent, session, "mock: questions Which size? | S | M ;; *Which extras? | milk | sugar")
    assert "Which size? You answered: S\nWhich extras? You answered: milk, sugar" in editor.text()


async def test_an_ask_that_somebody_else_answers_is_withdrawn(
    agent: Any, editor: Editor, api: httpx.Client, tmp_path: Path
) -> None:
    editor.decided.clear()
    session = await new(agent, tmp_path)
    running = asyncio.create_task(prompt(agent, session, "mock: permission delete\nmock: say done"))
    await until(lambda: len(editor.asked) == 1)
    (ask,) = api.get("/asks", params={"session": session}).json()["items"]
    api.post(f"/sessions/{session}/permissions/{ask['askId']}/reply", json={"reply": "once"})
    assert await running == "end_turn"
    editor.decided.set()
    await until(lambda: all(task.get_name() != ANSWERING for task in asyncio.all_tasks()))  # its late answer is out


async def test_a_client_that_leaves_does_not_stop_the_turn(
    server: RunningServer, door: str, editor: Editor, api: httpx.Client, tmp_path: Path
) -> None:
    async with connected(server, door, editor, tmp_path / "home") as agent:
        session = await new(agent, tmp_path)
        running = asyncio.create_task(prompt(agent, session, "mock: say begun\nmock: wait 0.5\nmock: say finished"))
        await until(lambda: "begun" in editor.text())
        running.cancel()
    ended = await asyncio.to_thread(_turn_end, api, session)
    assert ended["data"]["outcome"] == "completed"


def _turn_end(api: httpx.Client, session: str) -> dict[str, Any]:
    events = stream(api, f"/sessions/{session}/events/sse")
    return next(event for event in events if event["type"] == "turn.ended")
