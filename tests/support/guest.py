"""A server with an agent that has a login of its own."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server

PROGRAM = str(Path(__file__).parent / "programs" / "login_agent.py")
GUEST = {
    "command": [sys.executable, PROGRAM],
    "key": "GUEST_KEY",
    "login": [PROGRAM, "login"],
    "login_status": [PROGRAM, "status"],
    "login_files": [".guest/auth.json"],
}
_PIDS = re.compile(r"pid=(\d+)&child=(\d+)")


@contextmanager
def guest_server(folder: Path, *args: str, **env: str) -> Iterator[RunningServer]:
    """A server that has it."""
    agents = json.dumps({"guest": GUEST, "bare": {"command": [sys.executable, PROGRAM]}})
    with running_server(folder / "state", *args, env={"OSTLER_AGENTS": agents, **env}) as server:
        yield server


class Door:
    """The login of one agent over plain HTTP."""

    def __init__(self, api: httpx.Client, agent: str = "guest") -> None:
        self._api = api
        self._path = f"/agents/{agent}/login"

    def look(self) -> dict[str, Any]:
        answer = self._api.get(self._path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def post(self, path: str = "", **body: Any) -> httpx.Response:
        return self._api.post(f"{self._path}{path}", json=body or None)

    def leave(self) -> None:
        assert self._api.delete(self._path).status_code == 204

    def started(self) -> dict[str, Any]:
        """A login under way that waits for its code."""
        answer = self.post(method="subscription")
        assert answer.status_code == 200, answer.text
        wait_until(lambda: self.running().get("wantsCode", False), what="the login asks")
        return self.running()

    def running(self) -> dict[str, Any]:
        found: dict[str, Any] = self.look().get("running", {})
        return found

    def ended(self) -> dict[str, Any]:
        wait_until(lambda: self.running()["step"] not in {"starting", "waiting"}, what="the login ends")
        return self.running()


def pids_in(running: dict[str, Any]) -> list[int]:
    """The processes that a login said it has."""
    found = _PIDS.search(running["url"])
    assert found is not None
    return [int(number) for number in found.groups()]


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return True
    return state in {b"Z", b"X"}
