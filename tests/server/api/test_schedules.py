"""Schedules begin tasks of templates by the clock, once each time, also when a server is killed."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from ostler.server.engine.protocol import NotDone
from ostler.server.schedules.service import Fires
from ostler.server.store.records import Job
from ostler.server.store.schedules import FireJob, FireRow
from tests.support.fleet import fleet_in
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.triggering import store


def push(api: httpx.Client, name: str, prompt: str = "mock: say Hello") -> None:
    files = [
        {"path": "template.toml", "text": f'name = "{name}"\nprompt = "{prompt}"'},
        {"path": "agent.toml", "text": 'agent = "mock"'},
    ]
    assert api.post("/templates", json={"files": files}).status_code in {200, 201}


def create(api: httpx.Client, name: str, **more: Any) -> dict[str, Any]:
    answered = api.post("/schedules", json={"name": name, "template": "ticking", "cron": "0 3 * * *", **more})
    assert answered.status_code == 201, answered.text
    made: dict[str, Any] = answered.json()
    assert answered.headers["location"] == f"/api/v1/schedules/{made['id']}"
    return made


def runs(api: httpx.Client, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/schedules/{name}/runs").json()["items"]
    return found


def until_states(api: httpx.Client, name: str, states: list[str]) -> None:
    wait_until(lambda: [run["state"] for run in runs(api, name)] == states, f"its runs are {states}")


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def test_a_schedule_is_made_shown_changed_and_removed(api: httpx.Client) -> None:
    push(api, "ticking")
    made = create(api, "nightly", timeZone="Europe/Berlin")
    assert len(made["nextRuns"]) == 5
    assert api.get("/schedules/nightly").json() == made
    assert made in api.get("/schedules").json()["items"]
    assert "nextRuns" not in api.patch("/schedules/nightly", json={"paused": True}).json()
    changed = api.patch(f"/schedules/{made['id']}", json={"paused": False, "at": "2030-01-31T09:00:00Z"}).json()
    assert (changed["nextRuns"], "cron" in changed) == (["2030-01-31T09:00:00Z"], False)
    assert_problem(
        api.post("/schedules", json={"name": "nightly", "template": "ticking", "cron": "@daily"}), "schedule_exists"
    )
    assert api.delete("/schedules/nightly").status_code == 204
    assert_problem(api.get("/schedules/nightly"), "schedule_not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "../up", "cron": "@daily"}, "name"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "nonsense"}, "cron"),
        ({"cron": "@daily", "at": "2030-01-31T09:00:00Z"}, "cron"),
        ({}, "cron"),
        ({"cron": "@daily", "timeZone": "+02:00"}, "timeZone"),
        ({"cron": "@daily", "timeZone": "Europe"}, "timeZone"),
        ({"at": "2030-01-31T09:00:00"}, "at"),
        ({"at": "9999-12-31T23:59:59-12:00"}, "at"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "at"),
    ],
)
def test_what_is_no_time_is_refused_by_name(api: httpx.Client, body: dict[str, str], field: str) -> None:
    push(api, "ticking")
    answered = api.post("/schedules", json={"name": "wrong", "template": "ticking", **body})
    assert_problem(answered, "unprocessable", field=field)
    assert api.get("/schedules").status_code == 200, "nothing was stored that nobody can show"


async def test_a_time_that_waits_for_weeks_in_vain_fails_and_later_ones_begin(tmp_path: Path) -> None:
    async with fleet_in(tmp_path) as fleet:
        api, rows = fleet.api, fleet.services.sessions.store.schedules
        texts = {"template.toml": 'name = "look"\nprompt = "mock: wait 600"\n', "agent.toml": 'agent = "mock"'}
        await fleet.post("/templates", files=[{"path": path, "text": text} for path, text in texts.items()])
        made = await fleet.post("/schedules", name="weekly", template="look", cron="0 3 1 1 *", overlap="queue")
        row = await rows.find("default", made["id"])
        assert row is not None
        session = (await fleet.post("/sessions", agent="mock"))["id"]
        now = int(time.time())
        fires = [FireRow(schedule=row.id, due=now - ago, state="waiting") for ago in (50 * 86400, 10, 5)]
        await rows.fire(row, row.due, fires, 0.0)
        await rows.settle(msgspec.structs.replace(fires[1], state="started", session=session))
        work = Fires(fleet.services.sessions, fleet.services.runners).work
        body = msgspec.json.encode(FireJob(project="default", schedule=row.id, due=fires[2].due))
        job = Job(key="x", kind="x", body=body, tries=7, age=29.5 * 86400)
        with pytest.raises(NotDone, match=session):
            await work.run(job)
        await work.run(msgspec.structs.replace(job, tries=8))
        newest = (await api.get("/schedules/weekly/runs")).json()["items"][0]
        assert (newest["state"], session in newest["reason"]) == ("failed", True), newest


def test_a_schedule_needs_a_template(api: httpx.Client) -> None:
    answered = api.post("/schedules", json={"name": "none", "template": "nobody", "cron": "@daily"})
    assert_problem(answered, "template_not_found")


def test_a_task_begins_when_its_time_has_come_and_when_it_is_wanted(api: httpx.Client) -> None:
    push(api, "ticking")
    create(api, "soon", cron=None, at=in_seconds(2))
    wait_until(lambda: [run["state"] for run in runs(api, "soon")] == ["started"], "its time has come")
    session = api.get(f"/tasks/{runs(api, 'soon')[0]['session']}").json()
    assert (session["task"]["prompt"], session["labels"]["schedule"]) == ("mock: say Hello", "soon")
    create(api, "wanted", paused=True)
    assert api.post("/schedules/wanted/run").json()["state"] == "waiting"
    wait_until(lambda: runs(api, "wanted")[0]["state"] == "started", "it was begun by hand")


@pytest.mark.parametrize(("overlap", "states"), [("skip", ["skipped", "started"]), ("cancelOld", ["started"] * 2)])
def test_a_time_that_comes_while_the_task_before_is_at_work(api: httpx.Client, overlap: str, states: list[str]) -> None:
    push(api, "long", "mock: wait 600")
    name = f"long-{overlap.lower()}"
    create(api, name, template="long", overlap=overlap, paused=True)
    api.post(f"/schedules/{name}/run")
    wait_until(lambda: [run["state"] for run in runs(api, name)] == ["started"], "the first is at work")
    first = runs(api, name)[0]["session"]
    wait_until(lambda: api.post(f"/schedules/{name}/run").json()["due"] != runs(api, name)[-1]["due"], "a second later")
    wait_until(lambda: [run["state"] for run in runs(api, name)][-2:] == states, "what the overlap says")
    is_over = api.get(f"/sessions/{first}").json()["status"] == "cancelled"
    assert is_over == (overlap == "cancelOld")
    for run in runs(api, name):
        if "session" in run:
            api.post(f"/sessions/{run['session']}/cancel")


def test_a_task_that_could_not_begin_is_refused_when_its_schedule_is_made(api: httpx.Client) -> None:
    store(api, "needy", 'prompt = "mock: say Hi"\n[variables.who]\nrequired = true')
    store(api, "agentless", 'prompt = "mock: say Hi"', agent="")
    store(api, "silent", "")
    for template, inputs, code, field in [
        ("nobody", {}, "template_not_found", ""),
        ("agentless", {}, "invalid_request", "template"),
        ("silent", {}, "invalid_request", "prompt"),
        ("needy", {}, "unprocessable", "inputs.who"),
        ("needy", {"who": "ghp_0123456789abcdefghij"}, "unprocessable", "inputs.who"),
        ("needy", {"who": "Ann", "else": 1}, "unprocessable", "inputs.else"),
    ]:
        body = {"name": "refused", "cron": "@daily", "template": template, "inputs": inputs}
        problem = assert_problem(api.post("/schedules", json=body), code)
        assert list(problem.get("errors", {})) == ([field] if field else [])
    create(api, "needing", template="needy", inputs={"who": "Ann"})
    changed = api.patch("/schedules/needing", json={"inputs": {}})
    assert_problem(changed, "unprocessable", field="inputs")
    assert api.delete("/templates/needy").status_code == 204
    assert api.patch("/schedules/needing", json={"paused": True}).status_code == 200, "whatever its template is by now"


def test_a_template_that_is_gone_fails_the_run_and_says_why(api: httpx.Client) -> None:
    push(api, "going")
    create(api, "orphan", template="going", paused=True)
    assert api.delete("/templates/going").status_code == 204
    api.post("/schedules/orphan/run")
    wait_until(lambda: runs(api, "orphan")[0]["state"] == "failed", "it cannot begin")
    assert "no template 'going'" in runs(api, "orphan")[0]["reason"]


def test_a_time_that_came_while_the_server_was_killed_begins_one_task(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        push(api, "ticking")
        create(api, "killed", cron=None, at=in_seconds(1))
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
    for _ in range(2):
        with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
            until_states(api, "killed", ["started"])
            assert api.get("/tasks?label=schedule=killed").json()["total"] == 1
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
