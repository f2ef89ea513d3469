"""Tools of the client's own: offered to the model, asked for over the API, and answered with a result."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.client import AsyncClient, Client, QuestionUnanswered
from ostler.conformance.model import ScriptedModel
from ostler.wire.providers import ClientTool
from tests.agent.killing import Killed, server_with
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server

WEATHER: dict[str, Any] = {
    "name": "weather",
    "description": "The weather in a town.",
    "inputSchema": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}
TOOL = ClientTool(name="weather", description=WEATHER["description"], input_schema=WEATHER["inputSchema"])
PROMPT = 'SCRIPT: tool weather {"town": "Ulm"}'
MODEL = "openrouter/scripted-large"


@pytest.fixture
def server(tmp_path: Path, model: ScriptedModel) -> Iterator[RunningServer]:
    with server_with(tmp_path / "state", model) as (running, _):
        yield running


def _told(model: ScriptedModel) -> str:
    """The result that the model was told last."""
    *_, last = model.requests[-1]["body"]["messages"]
    return str(last["content"])


def _result(town: dict[str, Any]) -> dict[str, Any]:
    return {"town": town["town"], "degrees": 21}


def test_a_call_is_answered_by_the_function_of_its_name(server: RunningServer, model: ScriptedModel) -> None:
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="ostler", model=MODEL, client_tools=[TOOL])
        turn = session.run(PROMPT, tools={"weather": _result})
        assert turn.outcome == "completed"
    [offered] = [tool for tool in model.requests[0]["body"]["tools"] if tool["function"]["name"] == "weather"]
    assert offered["function"]["parameters"] == WEATHER["inputSchema"]
    assert json.loads(_told(model)) == {"town": "Ulm", "degrees": 21}


async def test_a_function_may_take_its_time_and_what_it_raises_reaches_the_model(
    server: RunningServer, model: ScriptedModel
) -> None:
    async def weather(_: dict[str, Any]) -> str:
        raise LookupError("no such town")

    async with AsyncClient(server.url) as ostler:
        session = await ostler.sessions.create(agent="ostler", model=MODEL, client_tools=[TOOL])
        turn = await session.run(PROMPT, tools={"weather": weather})
    assert turn.outcome == "completed"
    assert _told(model) == "LookupError: no such town"


def test_a_call_that_no_function_answers_is_raised_at_once_and_can_be_answered_later(
    server: RunningServer, model: ScriptedModel
) -> None:
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="ostler", model=MODEL, client_tools=[TOOL])
        turn = session.start(PROMPT)
        with pytest.raises(QuestionUnanswered, match="client's tool 'weather'") as asked:
            turn.wait(tools={"other": _result})
        session.answer(asked.value.question_id, result="rain")
        assert turn.wait().outcome == "completed"
    assert _told(model) == "rain"


def test_an_answer_survives_the_end_of_the_agent(tmp_path: Path, model: ScriptedModel) -> None:
    state = tmp_path / "state"
    with server_with(state, model) as (_, api):
        killed = Killed(state, api, clientTools=[WEATHER])
        killed.talk.send(PROMPT)
        ask = killed.talk.until_type("question.requested")["data"]
        assert ask["call"] == {"name": "weather", "input": {"town": "Ulm"}}
        killed.kill_now()
        answer = killed.talk.post(f"/questions/{ask['question_id']}/reply", result={"degrees": 21})
        assert answer.is_success, answer.text
        events = killed.until_over()
    assert events[-1]["data"]["outcome"] == "completed"
    assert [event["type"] for event in events].count("question.requested") == 1
    assert _told(model) == '{"degrees":21}'


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running_server(tmp_path_factory.mktemp("refused") / "state") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("tools", "field", "words"),
    [
        ([{**WEATHER, "name": "wea ther"}], "clientTools[0].name", "'wea ther' must be of A-Z"),
        ([{**WEATHER, "name": "a__b"}], "clientTools[0].name", "have no '__'"),
        ([WEATHER, WEATHER], "clientTools[1].name", "'weather' is there twice"),
        ([{**WEATHER, "description": " "}], "clientTools[0].description", "must say what the tool does"),
        ([{**WEATHER, "inputSchema": {"type": "string"}}], "clientTools[0].inputSchema", "of an object"),
        ([{**WEATHER, "description": "x" * 40_000}], "clientTools[0]", "larger than 32 KiB"),
        ([{**WEATHER, "name": f"t{number}"} for number in range(65)], "clientTools", "are 65, and a session has 64"),
        ([{**WEATHER, "name": "bash"}], "clientTools", "agent 'ostler' has 'bash' itself"),
    ],
)
def test_a_tool_that_no_model_could_have_is_refused(
    api: httpx.Client, tools: list[dict[str, Any]], field: str, words: str
) -> None:
    problem = assert_problem(api.post("/sessions", json={"agent": "ostler", "clientTools": tools}), "unprocessable")
    assert (list(problem["errors"]), words in problem["detail"]) == ([field], True), problem


def test_an_agent_that_takes_no_such_tools_refuses_them(api: httpx.Client) -> None:
    refused = api.post("/sessions", json={"agent": "mock", "clientTools": [WEATHER]})
    problem = assert_problem(refused, "unprocessable")
    assert problem["errors"] == {"clientTools": ["cannot be given to agent 'mock'"]}
