"""What a later message says about the agent counts from its turn on, or is refused by name; it is never ignored."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest
from mcp.client import Client
from mcp.types import TextContent

from tests.support.chatting import Body, ask, assert_status, content, envelope, message
from tests.support.patience import wait_until
from tests.support.serving import RunningServer
from tests.support.talk import Talk

DELETE = "mock: permission delete everything\nmock: say over"


@pytest.fixture
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def key() -> str:
    return f"settings-{uuid4().hex}"


def agent(**settings: Any) -> Body:
    return {"parameters": {"agent": {"harness": "mock", **settings}}}


def stock(key: str, text: str, **settings: Any) -> Body:
    return {"id": key, "messages": [message(text)], "agent": {"harness": "mock", **settings}}


def session(root: httpx.Client, key: str) -> Body:
    found: Body = root.get(f"/api/v1/sessions/{key}").json()
    return found


def is_waiting(root: httpx.Client, key: str) -> bool:
    return bool(session(root, key)["activity"] == "waiting")


# Chats


def test_a_stricter_permission_of_a_later_message_is_obeyed(root: httpx.Client, key: str) -> None:
    ask(root, message(DELETE), session=key, **agent(permissions="bypass"))
    answer = root.post("/messages", json=envelope(message(DELETE), session=key, **agent(permissions="ask")))
    assert answer.json()["status"]["message"] == "The agent wants permission to delete everything."
    assert is_waiting(root, key)
    assert session(root, key)["permissionMode"] == "default"


def test_a_message_that_says_nothing_leaves_the_permissions_as_they_are(root: httpx.Client, key: str) -> None:
    ask(root, message(DELETE), session=key, **agent(permissions="bypass"))
    assert content(ask(root, message(DELETE), session=key)).endswith("over")
    assert session(root, key)["permissionMode"] == "bypass"


def test_model_variant_mode_and_permissions_are_those_of_the_newest_message(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent())
    chosen = agent(model="mock-large", variant="high", mode="plan", permissions="plan")
    told = content(ask(root, message("mock: about\nmock: recall"), session=key, **chosen))
    assert "mock-large" in told
    assert "variant high" in told
    assert "permission mode plan" in told
    assert "I remember 2 user turns" in told  # the agent was started anew and resumed
    found = session(root, key)
    assert [found[name] for name in ("model", "variant", "mode", "permissionMode")] == [
        "mock-large",
        "high",
        "plan",
        "plan",
    ]


def test_the_body_of_a_stock_client_is_obeyed_too(root: httpx.Client, key: str) -> None:
    root.post("/api/chat", json=stock(key, "mock: say first", permissions="bypass"))
    with root.stream("POST", "/api/chat", json=stock(key, DELETE, permissions="ask")) as answer:
        assert answer.status_code == 200
        wait_until(lambda: is_waiting(root, key), what="the permission")


def test_a_provider_of_a_chat_is_stored_as_one_of_a_session(root: httpx.Client, key: str) -> None:
    provider = {"type": "openai", "base_url": "http://127.0.0.1:9", "api_key": "sk-test"}
    assert root.post("/api/chat", json=stock(key, "mock: say hi", provider=provider)).status_code == 200
    assert session(root, key)["provider"] == "openai at http://127.0.0.1:9"
    ask(root, message("mock: say more"), session=key)


def test_tools_of_a_later_message_are_the_sessions_tools(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent())
    tools = {"files": {"type": "stdio", "command": "true"}}
    ask(root, message("mock: say second"), session=key, **agent(tools=tools))
    assert session(root, key)["mcpServers"] == ["files"]


def test_a_change_while_a_turn_is_under_way_is_refused_by_name(root: httpx.Client, key: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(root.post, "/messages", json=envelope(message("mock: wait 300"), session=key, **agent()))
        wait_until(lambda: root.get(f"/api/v1/sessions/{key}").status_code == 200, what="the session")
        wait_until(lambda: session(root, key)["activity"] == "working", what="the turn")
        body = envelope(message("mock: say x"), session=key, **agent(permissions="bypass", model="mock-large"))
        status = assert_status(root.post("/messages", json=body), 409, "settings_in_use")
        assert "agent.permissions" in status["message"]
        assert "agent.model" in status["message"]
        assert session(root, key)["queueLength"] == 0
        root.post(f"/api/v1/sessions/{key}/cancel")
        turn.result()
    assert session(root, key)["permissionMode"] == "default"


def test_the_same_settings_again_while_a_turn_is_under_way_are_no_change(root: httpx.Client, key: str) -> None:
    chosen = agent(permissions="bypass", model="mock-large")
    with ThreadPoolExecutor(2) as pool:
        turns = [
            pool.submit(ask, root, message(f"mock: wait 0.3\nmock: say {number}"), session=key, **chosen)
            for number in range(2)
        ]
        assert {content(turn.result()) for turn in turns} == {"0", "1"}


def test_a_setting_the_agent_does_not_have_is_refused_and_changes_nothing(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent())
    body = envelope(message("mock: say x"), session=key, **agent(model="gpt-99", permissions="bypass"))
    assert "gpt-99" in assert_status(root.post("/messages", json=body), 422, "unprocessable")["message"]
    assert session(root, key)["permissionMode"] == "default"
    assert session(root, key)["turnCount"] == 1


def test_another_folder_is_refused_by_name(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent())
    body = envelope(message("mock: say x"), session=key, **agent(sandbox={"cwd": "/"}))
    assert "agent.sandbox.cwd" in assert_status(root.post("/messages", json=body), 409, "settings_fixed")["message"]


def test_a_branch_of_the_conversation_has_the_settings_of_its_message(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent(permissions="bypass"))
    other = [message("mock: say other"), message("other", "assistant"), message(DELETE)]
    root.post("/messages", json=envelope(*other, session=key, **agent(permissions="ask")))
    assert is_waiting(root, f"{key}:fork-2")


def test_first_messages_with_other_settings_never_share_a_turn_that_ignores_them(root: httpx.Client, key: str) -> None:
    models = ["mock-small", "mock-large"] * 2
    bodies = [envelope(message("mock: about"), session=key, **agent(model=model)) for model in models]
    with ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: root.post("/messages", json=body), bodies))
    for model, answer in zip(models, answers, strict=True):
        assert answer.status_code == 409 or model in content(answer.json())


# Other protocols


def run(root: httpx.Client, thread: str, text: str, **props: Any) -> httpx.Response:
    said = {"id": uuid4().hex, "role": "user", "content": text}
    body = {"threadId": thread, "runId": uuid4().hex, "messages": [said], "forwardedProps": {"agent": "mock", **props}}
    return root.post("/agui", json=body)


def test_forwarded_props_of_an_agui_run_are_obeyed(root: httpx.Client, key: str) -> None:
    assert "over" in run(root, key, DELETE, permissionMode="bypass").text
    assert '"interrupt"' in run(root, key, DELETE, permissionMode="default").text


@pytest.mark.parametrize(
    ("props", "code", "word"),
    [
        ({"permissionMode": "free"}, 400, "permissionMode"),
        ({"model": 5}, 400, "model"),
        ({"model": "gpt-99"}, 422, "gpt-99"),
        ({"agent": "codex"}, 409, "codex"),
    ],
)
def test_forwarded_props_that_cannot_be_are_refused_by_name(
    root: httpx.Client, key: str, props: Body, code: int, word: str
) -> None:
    run(root, key, "mock: say hi")
    answer = run(root, key, "mock: say hi", **props)
    assert (answer.status_code, word in answer.text) == (code, True), answer.text


async def test_a_message_by_mcp_changes_permissions_or_says_that_it_cannot(
    server: RunningServer, api: httpx.Client
) -> None:
    talk = Talk(api, permission_mode="bypass")
    talk.turn("mock: say hi")
    async with Client(f"{server.url}/mcp") as client:
        wanted = {"session_id": talk.id, "message": DELETE, "permission_mode": "default"}
        assert not (await client.call_tool("send_message", wanted)).is_error
        talk.until_type("permission.requested")
        refused = await client.call_tool("send_message", {**wanted, "permission_mode": "bypass"})
        unknown = await client.call_tool("send_message", {**wanted, "permissions": "bypass"})
    assert refused.is_error
    assert isinstance(refused.content[0], TextContent)
    assert "permission_mode" in refused.content[0].text
    assert unknown.is_error, "an argument that nobody knows is not ignored"


@pytest.mark.parametrize("path", ["/v1/sessions/{}/messages", "/api/v1/sessions/{}/messages"])
def test_protocols_without_settings_of_a_message_refuse_them(root: httpx.Client, key: str, path: str) -> None:
    root.post("/api/v1/sessions", json={"agent": "mock", "key": key})
    answer = root.post(path.format(key), json={"message": "mock: say hi", "permissionMode": "plan"})
    assert (answer.status_code, "permission" in answer.text) == (400, True)


def test_a_change_is_told_in_the_log(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say first"), session=key, **agent())
    ask(root, message("mock: say second"), session=key, **agent(permissions="bypass"))
    events = root.get(f"/api/v1/sessions/{key}/events").json()["events"]
    told = [event["data"] for event in events if event["type"] == "session.info"]
    assert [data["permission_mode"] for data in told if "permission_mode" in data] == ["bypass"], json.dumps(told)
