"""What a runner gets to start says for whom that is, and within what; orders of earlier versions say it too."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from ostler.runner.processes.journal import SPEC, StartRecord, read_start_record
from ostler.wire.grants import Grant
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.running import AgentSpec
from ostler.wire.workspaces import Repo, Resources, Runtime
from tests.support.serving import running_server
from tests.support.talk import Talk

AUTHORIZED = {"authorization": "Bearer open sesame"}


@pytest.fixture
def holder(state_dir: Path) -> Iterator[httpx.Client]:
    """A client with the token of a server."""
    with (
        running_server(state_dir, "--token", "open sesame") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", headers=AUTHORIZED, timeout=60) as client,
    ):
        yield client


def started(state_dir: Path, session: str) -> AgentSpec:
    """What the agent of a session was started with, as its runner noted it."""
    (folder,) = (state_dir / "keepers").glob(f"{session}*")
    record = read_start_record(folder)
    assert record is not None
    return record.spec


def test_an_agent_is_started_for_whoever_made_the_session_and_within_what_was_asked_for(
    holder: httpx.Client, state_dir: Path
) -> None:
    talk = Talk(holder, permission_mode="bypass")
    talk.turn("mock: say hello")
    assert started(state_dir, talk.id).grant == Grant(project="default", actor="token", permission_mode="bypass")


def test_a_task_has_a_tenant_and_the_limits_of_its_runtime(holder: httpx.Client, state_dir: Path) -> None:
    runtime = {"type": "local", "resources": {"cpu": 2, "memoryMib": 512}}
    task = {
        "prompt": "mock: say hello",
        "agent": {"type": "mock"},
        "repo": {"mode": "none"},
        "tenantId": "acme",
        "runtime": runtime,
        "keepOpen": True,
    }
    made = holder.post("/tasks", json=task)
    assert made.status_code == 201, made.text
    talk = Talk(holder, key=made.json()["id"])
    talk.until_type("turn.ended")
    limits = Resources(cpu=2, memory_mib=512)
    assert started(state_dir, talk.id).grant == Grant(
        tenant="acme", actor="token", runtime=Runtime(resources=limits), permission_mode="default"
    )


def test_a_session_is_of_the_tenant_of_its_project(holder: httpx.Client, state_dir: Path) -> None:
    assert holder.post("/tenants", json={"name": "acme"}).status_code == 201
    holder.headers["ostler-project"] = "acme/default"
    talk = Talk(holder)
    talk.turn("mock: say hello")
    shown = holder.get(f"/sessions/{talk.id}").json()
    assert (started(state_dir, talk.id).grant.tenant, shown["tenantId"]) == ("acme", "acme")
    for tenant, found in (("acme", [talk.id]), ("default", [])):
        listed = holder.get("/sessions", params={"tenantId": tenant}).json()["items"]
        assert [each["id"] for each in listed] == found


def test_an_order_of_an_earlier_version_means_the_same() -> None:
    sent = msgspec.json.encode({"repo": {}, "runtime": {"type": "devcontainer"}, "scope": "tea"})
    order = msgspec.json.decode(sent, type=WorkspaceOrder)
    assert order.granted == Grant(project="tea", runtime=Runtime(type="devcontainer"))
    assert WorkspaceOrder(repo=Repo(), grant=order.granted).granted == order.granted


def test_the_start_of_an_agent_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    spec = {"session_id": "ses_1", "agent": "mock", "start": 1, "cwd": "/", "env": {}, "permission_mode": "plan"}
    record = {"spec": spec, "framing": "lines", "max_frame_bytes": 1, "started_at": "2026-01-01T00:00:00Z"}
    (tmp_path / SPEC).write_bytes(msgspec.msgpack.encode(record))
    found = read_start_record(tmp_path)
    assert isinstance(found, StartRecord)
    assert (found.spec.permission_mode, found.spec.grant) == ("plan", Grant())
