"""The clients of sandbox-agent 0.4.2 from npm, unchanged, against a live server; and the doors they use, by hand."""

import base64
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.clients.conftest import Play
from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, clean_env


def test_its_client_prompts_is_asked_and_hears_everything(play: Play, server: RunningServer, tmp_path: Path) -> None:
    seen = play("sandbox_agent.mjs", url=server.url, cwd=str(tmp_path))
    assert seen["health"] == "ok"
    assert seen["stops"] == ["end_turn", "end_turn"]
    assert len(seen["asked"]) == 1
    assert "allow_once" in seen["asked"][0]
    assert ["string", "mock"] in seen["servers"]
    assert seen["agent"] == "claude"
    assert seen["said"].endswith("Hello there.Again.")
    kinds = {kind for _, method, kind in seen["updates"] if method == "session/update"}
    assert {"agent_thought_chunk", "plan", "tool_call", "tool_call_update", "agent_message_chunk"} <= kinds
    assert ["client", "session/prompt", None] in seen["updates"]


def test_its_acp_client_works_on_the_door_itself(play: Play, server: RunningServer, tmp_path: Path) -> None:
    seen = play("acp_http.mjs", url=server.url, cwd=str(tmp_path))
    assert (seen["protocol"], seen["stop"]) == (1, "end_turn")
    assert "agent_message_chunk" in seen["updates"]


@pytest.fixture
def acp(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1/acp", timeout=60) as client:
        yield client


def message(method: str, number: int | None = None, **params: object) -> dict[str, object]:
    own = {} if number is None else {"id": number}
    return {"jsonrpc": "2.0", **own, "method": method, "params": params}


INITIALIZE = message("initialize", 0, protocolVersion=1, clientCapabilities={})


def test_a_stream_goes_on_after_the_last_message_that_was_read(acp: httpx.Client, tmp_path: Path) -> None:
    mine = f"my-{uuid4()}"
    assert acp.post(f"/{mine}", params={"agent": "mock"}, json=INITIALIZE).json()["id"] == 0
    opened = acp.post(f"/{mine}", json=message("session/new", 1, cwd=str(tmp_path), mcpServers=[])).json()["result"]
    text = [{"type": "text", "text": "mock: say one two three"}]
    done = acp.post(f"/{mine}", json=message("session/prompt", 2, sessionId=opened["sessionId"], prompt=text))
    assert done.json()["result"]["stopReason"] == "end_turn"
    whole = read(acp, mine, "three")
    assert [number for number, _ in whole] == list(range(1, len(whole) + 1))
    assert read(acp, mine, "three", after=2) == whole[2:]
    assert [each["serverId"] for each in acp.get("").json()["servers"] if each["serverId"] == mine] == [mine]
    assert acp.delete(f"/{mine}").status_code == 204
    assert_problem(acp.post(f"/{mine}", json=message("session/list", 3)), "not_found")


@pytest.mark.lane("cli")
def test_a_client_that_does_not_read_is_kept_the_newest_messages_of_a_bounded_size(
    acp: httpx.Client, tmp_path: Path
) -> None:
    mine = f"my-{uuid4()}"
    acp.post(f"/{mine}", params={"agent": "mock"}, json=INITIALIZE)
    opened = acp.post(f"/{mine}", json=message("session/new", 1, cwd=str(tmp_path), mcpServers=[])).json()["result"]
    large = "x" * 900_000
    for number in range(12):
        text = [{"type": "text", "text": f"mock: say {large}"}]
        acp.post(f"/{mine}", json=message("session/prompt", number + 2, sessionId=opened["sessionId"], prompt=text))
    end = [{"type": "text", "text": "mock: say end"}]
    acp.post(f"/{mine}", json=message("session/prompt", 99, sessionId=opened["sessionId"], prompt=end))
    kept = read(acp, mine, "end")
    assert [number for number, _ in kept] == list(range(kept[0][0], kept[-1][0] + 1))
    assert kept[0][0] > 1
    assert 4 * 2**20 < sum(len(text) for _, text in kept) <= 8 * 2**20
    acp.delete(f"/{mine}")


def test_a_stream_without_a_first_message_leaves_nothing_behind(acp: httpx.Client, tmp_path: Path) -> None:
    mine = f"my-{uuid4()}"
    with acp.stream("GET", f"/{mine}", headers={"accept": "text/event-stream"}) as early:
        assert acp.get("").json()["servers"] == [
            each for each in acp.get("").json()["servers"] if each["serverId"] != mine
        ]
        assert acp.post(f"/{mine}", params={"agent": "mock"}, json=INITIALIZE).json()["id"] == 0
        asked = message("session/new", 1, cwd=str(tmp_path), mcpServers=[])
        opened = acp.post(f"/{mine}", json=asked).json()["result"]
        text = [{"type": "text", "text": "mock: say heard"}]
        acp.post(f"/{mine}", json=message("session/prompt", 2, sessionId=opened["sessionId"], prompt=text))
        assert any("heard" in line for line in early.iter_lines()), "a stream that came first hears all"
    acp.delete(f"/{mine}")
    assert_problem(acp.post(f"/{mine}", json=INITIALIZE), "not_found")


def read(acp: httpx.Client, server_id: str, last: str, after: int = 0) -> list[tuple[int, str]]:
    """What the stream gives until a word comes."""
    found: list[tuple[int, str]] = []
    number = 0
    headers = {"accept": "text/event-stream", "last-event-id": str(after)}
    with acp.stream("GET", f"/{server_id}", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("id:"):
                number = int(line[3:])
            elif line.startswith("data:"):
                found.append((number, line[5:].strip()))
                if json.loads(line[5:]).get("params", {}).get("update", {}).get("content", {}).get("text") == last:
                    return found
    raise AssertionError(found)


def test_wrong_messages_are_refused_with_what_to_do(acp: httpx.Client) -> None:
    assert_problem(acp.post("/nobody", json=INITIALIZE), "not_found")
    assert_problem(acp.post("/mine", params={"agent": "nobody"}, json=INITIALIZE), "unsupported_agent")
    assert_problem(acp.post("/mine", params={"agent": "mock"}, content=b"nonsense"), "invalid_request")


def test_its_calls_for_files_work_below_allowed_folders(play: Play, server: RunningServer, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("d/three.txt")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(b"third"))
    tar = base64.b64encode(packed.getvalue()).decode()
    seen = play("sandbox_agent_files.mjs", url=server.url, folder=str(folder), tar=tar)
    assert seen["wrote"] == {"path": f"{folder}/a/one.txt", "bytesWritten": 5}
    assert seen["read"] == "first"
    assert seen["made"] == {"path": f"{folder}/b/c"}
    assert seen["moved"] == {"from": f"{folder}/a/one.txt", "to": f"{folder}/b/c/two.txt"}
    assert (seen["taken"], seen["full"], seen["outside"], seen["missing"]) == (409, 400, 403, 404)
    assert {**seen["stat"], "modified": ""} == {
        "path": f"{folder}/b/c/two.txt",
        "entryType": "file",
        "size": 5,
        "modified": "",
    }
    assert seen["uploaded"] == {"paths": [f"{folder}/b/d/three.txt"], "truncated": False}
    found = [(each["name"], each["path"], each["entryType"]) for each in seen["entries"]]
    assert found == [("c", f"{folder}/b/c", "directory"), ("d", f"{folder}/b/d", "directory")]
    assert seen["gone"] == {"path": f"{folder}/b"}
    assert [each["name"] for each in seen["left"]] == ["a"]
    assert all(each["entryType"] == "directory" for each in seen["roots"])


def test_its_calls_for_processes_work_and_so_does_its_terminal(
    play: Play, server: RunningServer, tmp_path: Path
) -> None:
    seen = play("sandbox_agent_processes.mjs", url=server.url, folder=str(tmp_path))
    assert seen["changed"] == {**seen["config"], "maxOutputBytes": 1_000_000}
    ran = {"exitCode": 3, "stdout": f"{tmp_path}\nyes\n", "stderr": "no\n", "timedOut": False}
    assert {name: seen["ran"][name] for name in ran} == ran
    assert (seen["late"]["timedOut"], seen["late"]["exitCode"], seen["late"]["stdout"]) == (True, None, "begun\n")
    assert (seen["cut"]["stdout"], seen["cut"]["stdoutTruncated"]) == ("123", True)
    about = {"command": "cat", "args": [], "cwd": str(tmp_path), "status": "running", "tty": False, "owner": "user"}
    assert {name: seen["cat"][name] for name in about} == about
    assert seen["typed"] == {"bytesWritten": 4}
    assert [True, "running"] in seen["listed"]
    assert (seen["busy"], seen["gone"], seen["resized"]) == (409, 404, 409)
    assert (seen["stopped"]["status"], seen["stopped"]["exitCode"]) == ("exited", None)
    assert (seen["logs"], seen["stream"]) == ("one\n", "combined")
    assert (seen["ready"], seen["exit"], seen["errors"]) == (True, 4, [])
    assert "22 77" in seen["screen"]
    assert "/dev/pts/" in seen["screen"]
    assert seen["killed"]["status"] == "exited"


def test_its_calls_for_configuration_keep_tools_and_skills_with_a_folder(
    play: Play, server: RunningServer, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    seen = play("sandbox_agent_config.mjs", url=server.url, folder=str(folder))
    assert seen["before"] == 404
    assert seen["kept"] == [
        {"type": "local", "command": "notes", "args": ["--second"], "env": {"A": "1"}},
        {"type": "remote", "url": "http://127.0.0.1:9/mcp", "headers": {"x-a": "b"}},
        {"sources": [{"type": "github", "source": "some/skills", "ref": "v1", "skills": ["tea"]}]},
    ]
    assert seen["names"] == ["far", "notes"]
    assert (seen["gone"], seen["outside"]) == ([404, 404, 200], 403)


PAGE = Path(__file__).parents[2] / "docs" / "guides" / "daemon-api.md"


def printed(language: str) -> str:
    """The one block of a language in the page of the daemon API; test_curl_examples.py runs those of the shell."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return str(block)


def test_the_program_of_the_page_runs_as_it_is_printed(node: Path, server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(PAGE.parents[2] / "tests" / "clients" / "node_modules")
    program = tmp_path / "example.mjs"
    body = printed("javascript").replace("http://127.0.0.1:2468", server.url)
    program.write_text(body.replace('"/tmp"', json.dumps(str(tmp_path))))  # the state of a test's server is in /tmp
    env = clean_env(tmp_path / "home")
    done = subprocess.run([str(node), str(program)], env=env, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"client session/prompt", "agent session/update"} <= set(done.stdout.splitlines())


def test_the_session_with_skills_of_the_page_is_taken_as_it_is_printed(server: RunningServer, tmp_path: Path) -> None:
    order = json.loads(printed("json").replace("/home/me/project", str(tmp_path)))
    skill = tmp_path / "docs" / "skills" / "tea" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tea\ndescription: How to make tea.\n---\nWarm the pot.\n")
    made = httpx.post(f"{server.url}/v1/sessions/printed-{uuid4()}", json=order, timeout=60)
    assert (made.status_code, made.json()["healthy"]) == (200, True)
