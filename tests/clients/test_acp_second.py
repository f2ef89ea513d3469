"""The log as updates of ACP's second version, against the schema that its authors publish."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from ostler.client import Client
from tests.clients.conftest import HERE
from tests.support.serving import RunningServer

SCRIPT = """\
mock: think Let me see.
mock: say I will look.
mock: tool search {"query": "ostler"} -> 3 results
mock: plan Read | Write
mock: usage 1200 300 0.02
mock: permission delete the notes
mock: write a.md hello
mock: run echo ran; false
mock: say That is all."""


@pytest.fixture(scope="module")
def schemas(node: Path) -> dict[str, Draft202012Validator]:
    """By kind of update what it must be; the schema takes a kind that it does not know as it is."""
    found = json.loads((HERE / "node_modules/@agentclientprotocol/sdk/schema/v2/schema.json").read_text())
    variants = [each for each in found["$defs"]["SessionUpdate"]["anyOf"] if "sessionUpdate" in each["properties"]]
    return {
        each["properties"]["sessionUpdate"]["const"]: Draft202012Validator({**each, "$defs": found["$defs"]})
        for each in variants
        if "const" in each["properties"]["sessionUpdate"]
    }


def updates_of(server: RunningServer, cwd: Path) -> list[dict[str, Any]]:
    with Client(server.url) as ostler:
        session = ostler.sessions.create(agent="mock", cwd=str(cwd))
        session.run(SCRIPT, on_permission=lambda _: "once")
        session.run("mock: error The model is overloaded")
        path = f"{server.url}/api/v1/sessions/{session.id}/events"
    page = httpx.get(path, params={"format": "acp2", "limit": 1000}, timeout=60)
    updates: list[dict[str, Any]] = page.json()["events"]
    return updates


def test_updates_are_what_the_second_version_says(
    schemas: dict[str, Draft202012Validator], server: RunningServer, tmp_path: Path
) -> None:
    updates = updates_of(server, tmp_path)
    for update in updates:
        schemas[update["sessionUpdate"]].validate(update)
    states = [update["state"] for update in updates if update["sessionUpdate"] == "state_update"]
    assert states == ["running", "requires_action", "running", "idle", "running", "idle"]
    diffs = [block for update in updates for block in update.get("content", []) if "changes" in block]
    path = str(tmp_path / "a.md")
    assert diffs[-1]["changes"] == [{"operation": "add", "path": path}]
    assert diffs[-1]["patch"]["text"].startswith(f"diff --git {path} {path}\nnew file mode 100644\n--- /dev/null\n")
