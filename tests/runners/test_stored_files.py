"""What a task delivered is not gone with its runner: patch, diff and files come from the object store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.runners.test_moves import Hosts, wait_kept
from tests.support.hosts import runners_of
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.serving import running_server


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("kept")
    with running_server(folder / "server", "--local-slots", "0", "--runner-beat-seconds", "0.5") as server:
        found = Hosts(server, folder)
        yield found
        found.lose_all()


@pytest.fixture(scope="module")
def api(hosts: Hosts) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{hosts.server.url}/api/v1", timeout=120) as client:
        yield client


class Delivered:
    """A task that delivered its patch, and what could be read of it while its runner was there."""

    def __init__(self, hosts: Hosts, api: httpx.Client, folder: Path, runner: str) -> None:
        hosts.start(runner)
        order = {
            "repo": {"url": str(make_repository(folder / f"{runner}-repository"))},
            "prompt": "mock: write new.txt more text\nmock: say done",
            "agent": {"type": "mock"},
            "delivery": {"mode": "patch"},
        }
        made = api.post("/tasks", json=order)
        assert made.status_code == 201, made.text
        self._api = api
        self.path = f"/sessions/{made.json()['id']}"
        wait_until(lambda: api.get(self.path).json()["status"] == "completed", what="the task is done")
        wait_kept(hosts, made.json()["id"], 1)
        self.before = self.read()
        assert "more text" in self.before["patch"]

    def read(self) -> dict[str, Any]:
        """All that tells of the files."""
        answers = {
            "patch": self._api.get(f"{self.path}/patch"),
            "diff": self._api.get(f"{self.path}/diff"),
            "content": self._api.get(f"{self.path}/files/content?path=new.txt"),
            "files": self._api.get(f"{self.path}/files/paths"),
        }
        assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 200), {
            name: answer.text for name, answer in answers.items()
        }
        return {name: answer.text for name, answer in answers.items()}


@pytest.mark.parametrize("how", ["away", "removed"])
def test_what_was_delivered_can_be_read_without_its_runner(
    hosts: Hosts, api: httpx.Client, tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    task = Delivered(hosts, api, tmp_path_factory.getbasetemp(), how)
    runner = runners_of(hosts.server.url)[how]["id"]
    if how == "removed":
        assert api.delete(f"/runners/{runner}").status_code == 204
    hosts.lose(how)
    wait_until(lambda: api.get(task.path).json()["placement"]["state"] == "lost", what="that it is lost is said")
    assert f"the runner '{how}'" in api.get(task.path).json()["placement"]["reason"]
    assert task.read() == task.before
    assert api.put(f"{task.path}/files/content?path=new.txt", content=b"x").status_code in {409, 503}
