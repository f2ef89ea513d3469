"""Other agents use this server through MCP, with the protocol's own client."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from mcp.client import Client

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, clean_env, running_server


async def call(mcp: Any, name: str, /, **arguments: Any) -> Any:
    result = await mcp.call_tool(name, arguments)
    assert not result.is_error, result.content
    content = result.structured_content
    return content["result"] if set(content) == {"result"} else content


async def refused(mcp: Any, name: str, /, **arguments: Any) -> str:
    result = await mcp.call_tool(name, arguments)
    assert result.is_error
    return str(result.content[0].text)


async def test_the_tools_say_what_they_do(server: RunningServer) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        tools = {tool.name: tool.description for tool in (await mcp.list_tools()).tools}
        assert set(tools) == {
            "list_agents",
            "list_sessions",
            "start_session",
            "send_message",
            "hand_over",
            "wait_for_turn",
            "read_transcript",
            "answer_ask",
            "interrupt",
            "stop_session",
            "propose_schedule",
            "propose_trigger",
            "propose_policy",
        }
        assert all(tools.values())


async def test_an_agent_is_started_awaited_and_read(server: RunningServer, tmp_path: Path) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        assert "mock" in [agent["id"] for agent in await call(mcp, "list_agents")]
        started = await call(
            mcp, "start_session", agent="mock", prompt="mock: say Hello.", cwd=str(tmp_path), title="Tea"
        )
        done = await call(mcp, "wait_for_turn", session_id=started["session_id"])
        assert (done["activity"], done["outcome"], done["answer"]) == ("idle", "completed", "Hello.")
        await call(mcp, "send_message", session_id=started["session_id"], message="mock: say Again.")
        assert (await call(mcp, "wait_for_turn", session_id=started["session_id"]))["answer"] == "Again."
        read = await call(mcp, "read_transcript", session_id=started["session_id"])
        assert [(found["role"], found["text"]) for found in read["messages"]] == [
            ("user", "mock: say Hello."),
            ("assistant", "Hello."),
            ("user", "mock: say Again."),
            ("assistant", "Again."),
        ]
        assert started["session_id"] in [found["session_id"] for found in await call(mcp, "list_sessions", limit=200)]


async def test_asks_end_the_wait_and_are_answered(server: RunningServer) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        script = "mock: permission delete\nmock: question Tea or coffee? | tea | coffee"
        session = (await call(mcp, "start_session", agent="mock", prompt=script))["session_id"]
        (ask,) = (await call(mcp, "wait_for_turn", session_id=session))["asks"]
        assert ask["action"] == "delete"
        assert "needs once, always or reject" in await refused(
            mcp, "answer_ask", session_id=session, ask_id=ask["ask_id"]
        )
        await call(mcp, "answer_ask", session_id=session, ask_id=ask["ask_id"], reply="once")
        (question,) = (await call(mcp, "wait_for_turn", session_id=session))["asks"]
        assert question["options"] == ["tea", "coffee"]
        await call(mcp, "answer_ask", session_id=session, ask_id=question["ask_id"], answers=[["tea"]])
        assert "You answered: tea" in (await call(mcp, "wait_for_turn", session_id=session))["answer"]


async def test_a_wait_ends_when_its_time_is_up_and_a_turn_can_be_interrupted(server: RunningServer) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock", prompt="mock: wait 60"))["session_id"]
        assert (await call(mcp, "wait_for_turn", session_id=session, timeout_seconds=0.1))["activity"] == "working"
        assert (await call(mcp, "interrupt", session_id=session))["interrupted"] is True
        assert (await call(mcp, "wait_for_turn", session_id=session))["outcome"] == "interrupted"
        assert (await call(mcp, "stop_session", session_id=session))["status"] == "stopped"
        assert "stopped" in await refused(mcp, "send_message", session_id=session, message="hi")


async def test_wrong_arguments_are_told_and_start_nothing(server: RunningServer, api: httpx.Client) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        before = api.get("/sessions").json()["total"]
        assert "no agent 'nobody'" in await refused(mcp, "start_session", agent="nobody")
        assert "must not be empty" in await refused(mcp, "start_session", agent="mock", prompt=" ")
        assert "absolute path" in await refused(mcp, "start_session", agent="mock", cwd="here")
        assert "permission_mode" in await refused(mcp, "start_session", agent="mock", permission_mode="yolo")
        assert "no session 'nobody'" in await refused(mcp, "wait_for_turn", session_id="nobody")
        assert "no open ask" in await refused(
            mcp, "answer_ask", session_id=await _session(mcp), ask_id="x", reply="once"
        )
        assert api.get("/sessions").json()["total"] == before + 1


async def _session(mcp: Any) -> str:
    return str((await call(mcp, "start_session", agent="mock"))["session_id"])


async def test_the_token_is_needed_here_too(state_dir: Path) -> None:
    with running_server(state_dir, "--token", "right") as guarded:
        assert_problem(httpx.post(f"{guarded.url}/mcp", json={}), "token_invalid")


def test_what_is_no_message_is_refused(server: RunningServer) -> None:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    answer = httpx.post(f"{server.url}/mcp", content="{", headers=headers, timeout=60)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)


def test_a_server_loads_no_library_that_only_some_clients_need(tmp_path: Path) -> None:
    program = "import sys, ostler.app as app; app.build_app.__globals__['build_openapi'](); print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=clean_env(tmp_path), capture_output=True, text=True, check=True, timeout=60)
    assert {"mcp", "pydantic", "liquid", "babel", "jwt"} & set(done.stdout.split()) == set()


async def test_tools_that_change_something_are_lines_of_the_audit_log(server: RunningServer, tmp_path: Path) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock", cwd=str(tmp_path)))["session_id"]
        await call(mcp, "list_sessions")
        await call(mcp, "stop_session", session_id=session)
    lines = httpx.get(f"{server.url}/api/v1/audit", params={"limit": 2}).json()["items"]
    assert [(each["action"], each.get("target", "")) for each in lines] == [
        ("mcp.stop_session", session),
        ("mcp.start_session", ""),
    ]


async def test_what_an_agent_proposes_is_made_when_a_person_says_yes(server: RunningServer, api: httpx.Client) -> None:
    files = [{"path": "template.toml", "text": 'name = "nightly"\nprompt = "mock: say Good night"\n'}]
    agent = {"path": "agent.toml", "text": 'agent = "mock"'}
    assert api.post("/templates", json={"files": [*files, agent]}).status_code in {200, 201}
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock"))["session_id"]
        wanted = {"session_id": session, "template": "nightly", "reason": "The tests take long."}
        refusals = [
            await refused(mcp, "propose_schedule", **wanted, name="tests", cron="0 3 * *"),
            await refused(mcp, "propose_schedule", **{**wanted, "template": "nobody"}, name="tests", cron="@daily"),
            await refused(mcp, "propose_schedule", **wanted, name="Two Words", cron="@daily"),
            await refused(mcp, "propose_trigger", **wanted, name="x", scheme="github", prompt="{% include 'a' %}"),
        ]
        words = ("five fields", "nobody", "name", "prompt")
        assert [word for word, each in zip(words, refusals, strict=True) if word not in each] == [], refusals
        clock = {"name": "tests", "cron": "0 3 * * *", "time_zone": "Europe/Berlin"}
        first = await call(mcp, "propose_schedule", **wanted, **clock)
        second = await call(mcp, "propose_schedule", **wanted, **{**clock, "name": "never"})
        third = await call(mcp, "propose_trigger", **wanted, name="proposed", scheme="github")
        assert "The tests take long." in first["action"]
        answer = {"session_id": session, "ask_id": first["ask_id"], "reply": "once"}
        assert "confirmed by a person" in await refused(mcp, "answer_ask", **answer)
    assert api.get(f"/sessions/{session}").json()["activity"] == "waiting"
    assert api.get("/schedules/tests").status_code == 404
    replies = f"/sessions/{session}/permissions/{{}}/reply"
    accepted = api.post(replies.format(first["ask_id"]), json={"reply": "always"})
    assert (accepted.status_code, accepted.json()["status"]) == (200, "accept"), accepted.text
    assert api.post(replies.format(second["ask_id"]), json={"reply": "reject"}).json()["status"] == "reject"
    assert api.post(replies.format(third["ask_id"]), json={"reply": "once"}).status_code == 200
    made = api.get("/schedules/tests").json()
    assert (made["cron"], made["timeZone"], made["template"]) == ("0 3 * * *", "Europe/Berlin", "nightly")
    assert (api.get("/schedules/never").status_code, api.get("/triggers/proposed").status_code) == (404, 200)
    events = api.get(f"/sessions/{session}/events").json()["events"]
    (decided,) = [
        each
        for each in events
        if each["type"] == "permission.resolved" and each["data"]["permission_id"] == first["ask_id"]
    ]
    assert decided["actor"]
    for place in ("/schedules/tests", "/triggers/proposed"):
        assert api.delete(place).status_code == 204


async def test_of_a_yes_and_a_no_at_the_same_moment_one_counts(server: RunningServer, api: httpx.Client) -> None:
    texts = {"template.toml": 'name = "raced"\nprompt = "x"\n', "agent.toml": 'agent = "mock"'}
    api.post("/templates", json={"files": [{"path": path, "text": text} for path, text in texts.items()]})
    async with Client(f"{server.url}/mcp") as mcp, httpx.AsyncClient(base_url=api.base_url, timeout=60) as people:
        session = (await call(mcp, "start_session", agent="mock"))["session_id"]
        wanted = {"session_id": session, "template": "raced", "reason": "Why not.", "cron": "@yearly"}
        for number in range(8):
            ask = (await call(mcp, "propose_schedule", **wanted, name=f"race-{number}"))["ask_id"]
            place = f"/sessions/{session}/permissions/{ask}/reply"
            yes, no = await asyncio.gather(*(people.post(place, json={"reply": each}) for each in ("once", "reject")))
            late = no if yes.status_code == 200 else yes
            assert {yes.status_code, no.status_code} == {200, 409}
            words = "allowed once" if late is no else "rejected"
            assert words in assert_problem(late, "ask_resolved")["detail"]
            made = (await people.get(f"/schedules/race-{number}")).status_code == 200
            assert made is (late is no)
    assert len(_resolved(api, session)) == 8
    assert api.delete("/templates/raced").status_code in {204, 409}


async def test_a_policy_is_not_proposed_where_nothing_is_asked(server: RunningServer) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock", permission_mode="bypass"))["session_id"]
        wanted = {"session_id": session, "reason": "It asks again and again.", "rules": {"delete *": "allow"}}
        assert "bypass" in await refused(mcp, "propose_policy", **wanted)


async def test_a_policy_that_an_agent_proposes_holds_when_a_person_says_yes(
    server: RunningServer, api: httpx.Client
) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock"))["session_id"]
        wanted = {"session_id": session, "reason": "It asks again and again."}
        assert "rules" in await refused(mcp, "propose_policy", **wanted, rules={})
        assert "rules" in await refused(mcp, "propose_policy", **wanted, rules={"delete *": "always"})
        ask = await call(mcp, "propose_policy", **wanted, rules={"delete *": "allow"})
    assert "allow delete *" in ask["action"]
    assert "permissionRules" not in api.get(f"/sessions/{session}").json()
    answered = api.post(f"/sessions/{session}/permissions/{ask['ask_id']}/reply", json={"reply": "once"})
    assert answered.status_code == 200, answered.text
    api.post(f"/sessions/{session}/messages", json={"message": "mock: permission delete a note"})
    decided = {"type": "permission.resolved", "status": "accept"}
    wait_until(lambda: _resolved(api, session)[1:] == [decided], "a rule decides it")


def _resolved(api: httpx.Client, session: str) -> list[dict[str, str]]:
    events = api.get(f"/sessions/{session}/events").json()["events"]
    found = [each for each in events if each["type"] == "permission.resolved"]
    return [{"type": each["type"], "status": each["data"]["status"]} for each in found]


async def test_a_proposal_that_cannot_be_made_stays_open(server: RunningServer, api: httpx.Client) -> None:
    texts = {"template.toml": 'name = "gone"\nprompt = "x"\n', "agent.toml": 'agent = "mock"'}
    files = [{"path": path, "text": text} for path, text in texts.items()]
    api.post("/templates", json={"files": files})
    async with Client(f"{server.url}/mcp") as mcp:
        session = (await call(mcp, "start_session", agent="mock"))["session_id"]
        wanted = {"session_id": session, "template": "gone", "reason": "Why not.", "name": "lost", "cron": "@daily"}
        ask = await call(mcp, "propose_schedule", **wanted)
    assert api.delete("/templates/gone").status_code == 204
    place = f"/sessions/{session}/permissions/{ask['ask_id']}/reply"
    assert_problem(api.post(place, json={"reply": "once"}), "template_not_found")
    assert [each["askId"] for each in api.get("/asks", params={"session": session}).json()["items"]] == [ask["ask_id"]]
    assert api.post(place, json={"reply": "reject"}).status_code == 200
