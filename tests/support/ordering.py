"""Orders tasks from a real server and waits for what becomes of them."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.places import git
from tests.support.serving import RunningServer, clean_env, running_server

ENDED = frozenset({"completed", "failed", "stopped", "cancelled"})
Json = dict[str, Any]


@contextmanager
def task_server(
    state_dir: Path, folder: Path, *args: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[tuple[RunningServer, httpx.Client]]:
    """A server that may use repositories below a folder, and a client below /api/v1."""
    flags = ("--repository-folder", str(folder), "--stop-grace-seconds", "0.5", *args)
    with running_server(state_dir, *flags, env=env, prefix=prefix) as server, client_of(server) as api:
        yield server, api


def client_of(server: RunningServer) -> httpx.Client:
    """A plain client below /api/v1."""
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)


def task(prompt: str, repository: Path, **more: Any) -> Json:
    """The smallest body that the specification has, and more."""
    repo = {"mode": "git", "url": str(repository), "branch": "main"}
    return {"prompt": prompt, "repo": repo, "runtime": {"type": "local"}, "agent": {"type": "mock"}, **more}


def order(api: httpx.Client, body: Json) -> str:
    """Order a task; gives the id of its session."""
    answer = api.post("/tasks", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def finished(api: httpx.Client, session: str, *, seconds: float = 90.0) -> Json:
    """Wait until a session is over; gives it as the tasks API shows it."""
    deadline = time.monotonic() + seconds
    while True:
        found: Json = api.get(f"/tasks/{session}").json()
        if found["status"] in ENDED:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def done(api: httpx.Client, body: Json) -> Json:
    """Order a task and wait for its end."""
    found = finished(api, order(api, body))
    assert found["status"] == "completed", found
    return found


def new_session(api: httpx.Client, repository: Path, **more: Any) -> str:
    """A session with a workspace, ready for prompts."""
    repo = {"mode": "git", "url": str(repository), "branch": "main"}
    answer = api.post("/sessions", json={"agent": "mock", "repo": repo, **more})
    assert answer.status_code == 201, answer.text
    session = str(answer.json()["id"])
    settled(api, session, turn=0)
    return session


def say(api: httpx.Client, session: str, *directives: str) -> int:
    """Send a prompt and wait until its turn is over and kept; gives the number of the turn."""
    turn = int(api.get(f"/sessions/{session}").json()["turnCount"]) + 1
    answer = api.post(f"/sessions/{session}/messages", json={"message": "\n".join(directives)})
    assert answer.status_code == 202, answer.text
    settled(api, session, turn=turn)
    return turn


def settled(api: httpx.Client, session: str, *, turn: int, seconds: float = 90.0) -> None:
    """Wait until a turn has its snapshot."""
    deadline = time.monotonic() + seconds
    while True:
        answer = api.get(f"/sessions/{session}/snapshots")
        if answer.is_success and any(kept["turn"] == turn for kept in answer.json()["snapshots"]):
            return
        status = api.get(f"/sessions/{session}").json()
        assert status["status"] != "failed", status
        assert time.monotonic() < deadline, (status, answer.text)
        time.sleep(0.05)


def events(api: httpx.Client, session: str, *types: str) -> list[Json]:
    """The events of a session, all or of some types."""
    found: list[Json] = api.get(f"/sessions/{session}/events", params={"limit": 10_000}).json()["events"]
    return [event for event in found if not types or event["type"] in types]


def texts(api: httpx.Client, session: str) -> list[str]:
    """What the agent said, in order."""
    messages = api.get(f"/sessions/{session}/messages").json()["messages"]
    said = [message["item"] for message in messages if message["item"].get("role") == "assistant"]
    return ["".join(part.get("text", "") for part in item["content"]) for item in said if item["kind"] == "message"]


def prompts(api: httpx.Client, session: str) -> list[str]:
    """What was said to the agent, in order."""
    messages = api.get(f"/sessions/{session}/messages").json()["messages"]
    return [message["item"]["content"][0]["text"] for message in messages if message["item"].get("role") == "user"]


def tree_of(api: httpx.Client, session: str, turn: int) -> str:
    """The git tree that was kept of a turn."""
    kept = api.get(f"/sessions/{session}/snapshots").json()["snapshots"]
    return str([each["tree"] for each in kept if each["turn"] == turn][-1])


def shell(folder: Path, script: str) -> str:
    """What a script prints."""
    env = clean_env(folder.parent / "home", {"GIT_CONFIG_NOSYSTEM": "1"})
    return subprocess.run(["sh", "-ec", script], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


def tree_now(api: httpx.Client, session: str, folder: Path) -> str:
    """The git tree of what the workspace holds, computed by plain git from its archive."""
    folder.mkdir()
    archive = api.get(f"/sessions/{session}/files/archive", params={"form": "tar"}).content
    (folder.parent / f"{folder.name}.tar").write_bytes(archive)
    shell(folder, f"tar -xf ../{folder.name}.tar")
    git(folder, "init", "-q")
    git(folder, "-c", "core.autocrlf=false", "-c", "core.fileMode=true", "add", "-A")
    return git(folder, "write-tree")
