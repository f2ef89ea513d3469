"""A real podman for pools, and servers that make their runners in it."""

import json
import os
import re
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.support.patience import wait_until
from tests.support.real_engine import BARE, VOLUMES, import_bare_image, install_engine, podman
from tests.support.serving import RunningServer, running_server

LABELS = {"made": "yes"}
Json = dict[str, Any]


@dataclass(frozen=True)
class Podman:
    """The podman of a test."""

    binaries: Path

    @property
    def env(self) -> dict[str, str]:
        """What a server finds it by."""
        return {"PATH": f"{self.binaries}{os.pathsep}{os.environ['PATH']}"}

    def hosts(self) -> list[str]:
        """The names of all containers, whatever state they are in."""
        return sorted(podman(self.binaries, "ps", "--all", "--format", "{{.Names}}").split())

    def call(self, *words: str) -> str:
        """What podman says."""
        return podman(self.binaries, *words)

    @contextmanager
    def broken(self, script: str) -> Iterator[None]:
        """Meanwhile another program is in its stead."""
        program = self.binaries / "podman"
        aside = program.with_name("podman-aside")
        program.rename(aside)
        try:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            yield
        finally:
            aside.rename(program)


@contextmanager
def installed_podman() -> Iterator[Podman]:
    """A podman with a store of its own, and the image BARE; nothing of it is left."""
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:  # podman takes no long names for its folders
        binaries = install_engine(Path(short) / "podman")
        import_bare_image(binaries)
        try:
            yield Podman(binaries)
        finally:
            podman(binaries, "rm", "--force", "--all", "--time", "0")


def pool(**more: Any) -> Json:
    """A pool whose runners are made of this machine's own files."""
    return {
        "image": BARE,
        "labels": LABELS,
        "network": "host",
        "volumes": VOLUMES,
        "command": [sys.executable, "-m", "ostler"],
        "max_runners": 2,
        **more,
    }


@contextmanager
def pool_server(
    state_dir: Path, engine: Podman, *args: str, failpoint: str = "", **pools: Json
) -> Iterator[RunningServer]:
    """A server with pools."""
    env = {**engine.env, "OSTLER_POOLS": json.dumps(pools), "OSTLER_FAILPOINT": failpoint}
    with running_server(state_dir, "--runner-beat-seconds", "0.5", *args, env=env) as server:
        yield server


class Api:
    """What a client of a server asks."""

    def __init__(self, server: RunningServer, authority: Path | None = None) -> None:
        self._url = f"{server.url}/api/v1"
        self._verify = ssl.create_default_context(cafile=str(authority)) if authority is not None else True

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        answer = httpx.request(method, f"{self._url}{path}", timeout=60, verify=self._verify, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def order(self, prompt: str = "mock: env container", **more: Any) -> str:
        """A task that only a runner of the pool can do; its id."""
        body = {
            "prompt": prompt,
            "repo": {"mode": "none"},
            "runtime": {"type": "local", "labels": LABELS},
            "agent": {"type": "mock"},
            **more,
        }
        return str(self.post("/tasks", **body)["id"])

    def get(self, path: str, **params: Any) -> Any:
        """Read something."""
        return self._ask("GET", path, params=params)

    def task(self, task: str) -> Json:
        """The session of a task as it is."""
        found: Json = self._ask("GET", f"/sessions/{task}")
        return found

    def until(self, task: str, status: str) -> None:
        """Wait for a task."""
        wait_until(lambda: self.task(task)["status"] == status, what=f"the task is {status}", seconds=120)

    def lines(self, task: str) -> list[str]:
        """What its log says to operators."""
        found = self._ask("GET", f"/sessions/{task}/events", params={"limit": 10_000})["events"]
        return [event["data"]["message"] for event in found if event["type"] == "log"]

    def until_told(self, task: str, pattern: str) -> None:
        """Wait for a line."""
        wait_until(lambda: any(re.search(pattern, line) for line in self.lines(task)), what=f"a line says {pattern}")

    def managed(self) -> dict[str, Json]:
        """The runners of pools, by name."""
        items = self._ask("GET", "/runners")["items"]
        return {each["name"]: each for each in items if each.get("managed")}

    def until_managed(self, count: int) -> dict[str, Json]:
        """Wait until there are so many runners of pools."""
        wait_until(lambda: len(self.managed()) == count, what=f"{count} runners were made", seconds=120)
        return self.managed()

    def post(self, path: str, **body: Any) -> Json:
        """What is answered."""
        found: Json = self._ask("POST", path, json=body)
        return found

    def delete(self, path: str) -> None:
        """Remove something."""
        self._ask("DELETE", path)
