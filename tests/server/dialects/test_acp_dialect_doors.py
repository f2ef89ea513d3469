"""Each way into the Agent Client Protocol answers wrong requests as its transport says."""

import json
import subprocess
from pathlib import Path
from typing import Any

import acp
import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.acp_client import Editor, connected
from tests.support.http_helpers import assert_problem
from tests.support.ordering import new_session, say, task_server
from tests.support.places import make_repository
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server
from tests.support.talk import Talk

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def post(server: RunningServer, message: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/acp", json=message, headers=headers, timeout=60)


def hello(server: RunningServer) -> dict[str, str]:
    answer = post(server, HELLO)
    assert (answer.status_code, answer.json()["result"]["protocolVersion"]) == (200, 1)
    return {"acp-connection-id": answer.headers["acp-connection-id"]}


def test_a_post_needs_a_connection_that_exists(server: RunningServer) -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "session/list"}
    assert_problem(post(server, listing), "invalid_request", field="Acp-Connection-Id")
    assert_problem(post(server, listing, **{"acp-connection-id": "nobody"}), "not_found")
    answer = post(server, listing, **hello(server))
    assert (answer.status_code, answer.content) == (202, b"")


def test_a_post_about_a_session_names_it_in_a_header(server: RunningServer) -> None:
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "x"}}
    assert_problem(post(server, cancel, **hello(server)), "invalid_request", field="Acp-Session-Id")


def test_batches_other_types_and_broken_messages_are_refused(server: RunningServer) -> None:
    assert_problem(post(server, [HELLO]), "not_supported")
    plain = httpx.post(f"{server.url}/acp", content="{}", headers={"content-type": "text/plain"})
    assert_problem(plain, "unsupported_media_type")
    broken = httpx.post(f"{server.url}/acp", content="{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, -32700)
    assert post(server, {**HELLO, "params": {}}).json()["error"]["code"] == -32602
    unanswerable = post(server, {name: value for name, value in HELLO.items() if name != "id"})
    assert (unanswerable.status_code, unanswerable.json()["error"]["code"]) == (400, -32600)


def test_a_stream_needs_a_connection_and_a_client_that_takes_streams(server: RunningServer, api: httpx.Client) -> None:
    url, stream = f"{server.url}/acp", {"accept": "text/event-stream"}
    assert_problem(httpx.get(url, headers={**hello(server), "accept": "application/json"}), "not_acceptable")
    assert_problem(httpx.get(url, headers=stream), "invalid_request", field="Acp-Connection-Id")
    assert_problem(httpx.get(url, headers={**stream, "acp-connection-id": "nobody"}), "not_found")
    unknown = {**stream, **hello(server), "acp-session-id": "nobody"}
    assert_problem(httpx.get(url, headers=unknown), "session_not_found")


def test_a_stream_opened_ahead_of_a_load_gets_the_replay(server: RunningServer, api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say Hello.")
    connection = hello(server)
    headers = {**connection, "acp-session-id": talk.id}
    load = {"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": {"sessionId": talk.id, "cwd": "/"}}
    with httpx.stream("GET", f"{server.url}/acp", headers={**headers, "accept": "text/event-stream"}) as stream:
        assert post(server, load, **headers).status_code == 202
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        update = next(found for found in lines if found["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
    assert update["params"]["update"]["content"] == {"type": "text", "text": "Hello."}


def test_a_deleted_connection_is_gone_and_its_streams_end(server: RunningServer) -> None:
    connection = hello(server)
    with httpx.stream("GET", f"{server.url}/acp", headers={**connection, "accept": "text/event-stream"}) as stream:
        assert httpx.delete(f"{server.url}/acp", headers=connection).status_code == 202
        assert "data: " not in stream.read().decode()
    assert_problem(httpx.delete(f"{server.url}/acp", headers=connection), "not_found")


def test_a_socket_answers_what_is_no_message_and_goes_on(server: RunningServer) -> None:
    with connect(server.url.replace("http", "ws") + "/acp") as socket:
        assert socket.response is not None
        assert socket.response.headers["acp-connection-id"].startswith("acp_")
        for wrong, code in [("{", -32700), ("[]", -32600), ('{"id": 1, "method": "session/list"}', -32600)]:
            socket.send(wrong)
            assert json.loads(socket.recv(30))["error"]["code"] == code
        socket.send(b"\x00")
        socket.send(json.dumps(HELLO))
        assert json.loads(socket.recv(30))["result"]["agentInfo"]["name"] == "ostler"


def test_changes_over_a_socket_are_lines_of_the_audit_log(server: RunningServer, tmp_path: Path) -> None:
    def ask(method: str, **params: Any) -> Any:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
        while (message := json.loads(socket.recv(30))).get("id") != method:
            continue
        return message["result"]

    with connect(server.url.replace("http", "ws") + "/acp") as socket:
        ask("initialize", protocolVersion=1)
        session = ask("session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]
        ask("session/list")
        ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "mock: say Hello."}])
        ask("session/delete", sessionId=session)
    lines = httpx.get(f"{server.url}/api/v1/audit", params={"limit": 3}).json()["items"]
    assert [(each["action"], each["target"]) for each in lines] == [
        (f"acp.{method}", session) for method in ("session/delete", "session/prompt", "session/new")
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer right", "origin": "http://evil.example"}, 403),
    ],
    ids=["none", "wrong", "foreign"],
)
def test_a_socket_needs_the_token_and_a_known_origin(state_dir: Path, headers: dict[str, str], status: int) -> None:
    with running_server(state_dir, "--token", "right") as guarded:
        with pytest.raises(InvalidStatus) as refused:
            connect(guarded.url.replace("http", "ws") + "/acp", additional_headers=headers)
        assert refused.value.response.status_code == status


def test_the_command_says_in_one_line_how_to_start_a_server(tmp_path: Path) -> None:
    command = [*OSTLER, "acp", "--server", "http://127.0.0.1:9"]
    done = subprocess.run(
        command, env=clean_env(tmp_path), input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "Error: No Ostler server answers at http://127.0.0.1:9. Start one with `ostler serve`.\n"


def test_the_command_names_the_token_when_it_is_missing(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir, "--token", "right") as guarded:
        command = [*OSTLER, "acp", "--server", guarded.url]
        done = subprocess.run(
            command, env=clean_env(tmp_path), input="", capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, "OSTLER_TOKEN" in done.stderr) == (1, True)


def test_the_command_ends_with_one_line_when_the_server_stops(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir) as server:
        bridge = subprocess.Popen(
            [*OSTLER, "acp", "--server", server.url],
            env=clean_env(tmp_path),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(json.dumps(HELLO) + "\n")
        bridge.stdin.flush()
        assert json.loads(bridge.stdout.readline())["id"] == 1
    _, stderr = bridge.communicate(timeout=60)
    assert (bridge.returncode, stderr) == (3, f"Error: The connection to {server.url} broke: the server stopped.\n")


async def test_a_session_is_loaded_after_the_server_was_started_anew(state_dir: Path, tmp_path: Path) -> None:
    with running_server(state_dir) as server:
        async with connected(server, "stdio", Editor(), tmp_path / "home") as agent:
            session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            await agent.prompt(session_id=session, prompt=[acp.text_block("mock: say Hello.")])
    editor = Editor()
    with running_server(state_dir) as server:
        async with connected(server, "stdio", editor, tmp_path / "home") as agent:
            await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
            await agent.prompt(session_id=session, prompt=[acp.text_block("mock: recall")])
    assert editor.text().startswith("Hello.")
    assert "2" in editor.text()


async def test_what_a_rewind_took_back_is_not_replayed(state_dir: Path, tmp_path: Path) -> None:
    editor, repository = Editor(), make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (server, api):
        session = new_session(api, repository)
        for word in ("one", "two"):
            say(api, session, f"mock: say {word}")
        assert api.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
        say(api, session, "mock: say three")
        async with connected(server, "websocket", editor, tmp_path / "home") as agent:
            await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
    assert editor.text() == "onethree"
