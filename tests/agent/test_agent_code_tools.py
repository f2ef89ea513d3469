"""What a session or a template makes of the agent: tools that are programs, and another system prompt."""

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ostler.client import Client
from ostler.conformance.model import ScriptedModel
from ostler.wire.providers import CodeTool
from tests.agent.killing import server_with
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer

MODEL = "openrouter/scripted-large"
COUNT = """# /// tool
# description = "Counts the words of a text."
# [input.text]
# type = "string"
# description = "The text"
# [input.least]
# type = "integer"
# default = 1
# ///
import json, os, sys
given = json.load(sys.stdin)
print(sum(len(word) >= given.get("least", 1) for word in given["text"].split()), os.listdir("/tmp"))
"""
DOUBLE = """// /// tool
// description = "Doubles a number."
// [input.number]
// type = "number"
// ///
import { readFileSync } from "node:fs";
const given: { number: number } = JSON.parse(readFileSync(0, "utf8"));
console.log(given.number * 2);
"""
FILES = {
    "template.toml": 'name = "counter"\n',
    "agent.toml": f'agent = "ostler"\nmodel = "{MODEL}"\npermission_mode = "plan"\n',
    "tools/count.py": COUNT,
    "tools/double.ts": DOUBLE,
    "tools/helper.py": "print('no head, so no tool')\n",
}
HAS_WALLS = shutil.which("bwrap") is not None
needs_walls = pytest.mark.skipif(not HAS_WALLS, reason="this machine has no bubblewrap")


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ScriptedModel) -> Iterator[RunningServer]:
    with server_with(tmp_path_factory.mktemp("tools") / "state", model) as (running, _):
        yield running


@pytest.fixture
def api(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client:
        yield client


def _push(api: httpx.Client, **changed: str) -> httpx.Response:
    texts = {**FILES, **changed}
    return api.post("/templates", json={"files": [{"path": path, "text": text} for path, text in texts.items()]})


def _last(model: ScriptedModel) -> dict[str, Any]:
    body: dict[str, Any] = model.requests[-1]["body"]
    return body


@needs_walls
def test_tools_of_a_template_are_offered_and_run_behind_walls(
    server: RunningServer, api: httpx.Client, model: ScriptedModel
) -> None:
    assert _push(api).json()["codeTools"] == ["count", "double"]
    with Client(server.url) as ostler:
        session = ostler.sessions.create(template="counter")
        assert ostler.sessions.get(session.id).code_tools == ("count", "double")
        turn = session.run('SCRIPT: tool count {"text": "a word or two", "least": 2} ;; tool double {"number": 21}')
        assert turn.outcome == "completed"
    offered = {tool["function"]["name"]: tool["function"] for tool in _last(model)["tools"]}
    assert offered["count"]["description"] == "Counts the words of a text."
    assert offered["count"]["parameters"]["required"] == ["text"]
    assert {"helper"}.isdisjoint(offered)
    results = [message["content"] for message in _last(model)["messages"] if message["role"] == "tool"]
    assert results[0] == "3 []"  # it looks and asks nobody, also in plan mode, and its walls hold no file
    assert results[1] == "42" or "needs Node.js" in results[1]


@needs_walls
def test_a_program_of_a_session_that_fails_is_told_to_the_model(server: RunningServer, model: ScriptedModel) -> None:
    tool = CodeTool(
        name="leave", description="Leaves.", code="import socket\nsocket.create_connection(('127.0.0.1', 9))"
    )
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="ostler", model=MODEL, code_tools=[tool])
        assert session.run("SCRIPT: tool leave {}").outcome == "completed"
    assert "exit code 1" in _last(model)["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("# [input\n", "its head is not read"),
        ('# describtion = "x"\n', "describtion"),
        ("# [input.a]\n# type = 'string'\n", "needs a description"),
    ],
)
def test_a_template_whose_tool_is_wrong_is_refused(api: httpx.Client, head: str, words: str) -> None:
    refused = _push(api, **{"tools/bad.py": f"# /// tool\n{head}# ///\nprint(1)\n"})
    assert (refused.status_code, words in refused.text) == (422, True), refused.text


def test_what_cannot_be_a_tool_is_refused_by_its_field(api: httpx.Client) -> None:
    tool = {"name": "count", "description": "Counts.", "code": "print(1)"}
    for body, field in [
        ({"agent": "mock", "codeTools": [tool]}, "codeTools"),
        ({"agent": "ostler", "codeTools": [{**tool, "name": "bash"}]}, "codeTools"),
        ({"agent": "ostler", "codeTools": [{**tool, "code": " "}]}, "codeTools[0].code"),
        ({"agent": "ostler", "codeTools": [{**tool, "code": "x" * 70_000}]}, "codeTools[0]"),
        (
            {
                "agent": "ostler",
                "codeTools": [tool],
                "clientTools": [{"name": "count", "description": "Counts."}],
            },
            "codeTools[0].name",
        ),
        ({"agent": "mock", "systemPrompt": "Be brief."}, "systemPrompt"),
    ]:
        assert list(assert_problem(api.post("/sessions", json=body), "unprocessable")["errors"]) == [field]
    blank = api.post("/sessions", json={"agent": "ostler", "systemPrompt": " "})
    assert list(assert_problem(blank, "invalid_request")["errors"]) == ["systemPrompt"]


def test_the_system_prompt_is_seen_and_can_be_replaced_before_a_session_begins(
    server: RunningServer, api: httpx.Client, model: ScriptedModel
) -> None:
    own = api.get("/agents/ostler").json()["systemPrompt"]
    assert own["text"].startswith("You are Ostler's coding agent.")
    assert len(own["version"]) == 12
    assert "systemPrompt" not in api.get("/agents/mock").json()
    with Client(server.url) as ostler:
        ostler.sessions.create(agent="ostler", model=MODEL).run("SCRIPT: say Hi.")
        assert _last(model)["messages"][0]["content"].startswith(own["text"])
        made = ostler.sessions.create(
            agent="ostler", model=MODEL, system_prompt="You are a poet.", instructions="Write in French."
        )
        made.run("SCRIPT: say Hi.")
        assert ostler.sessions.get(made.id).system_prompt == "You are a poet."
        assert all(each.system_prompt is None for each in ostler.sessions.list().items)
    told = _last(model)["messages"][0]["content"]
    assert told.startswith("You are a poet.\n\nThe workspace is ")
    assert told.endswith("Write in French.")
    assert "coding agent" not in told
