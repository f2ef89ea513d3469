"""The audit log: who changed what, who was refused, and what becomes of it when somebody changes it afterwards."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from ostler.cli import root
from tests.server.api.test_keys import TOKEN, Team, client_of, new_key
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.triggering import create, push, send


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "state"


@pytest.fixture(scope="module")
def team(state: Path) -> Iterator[Team]:
    with running_server(state, "--token", TOKEN) as server, client_of(server, TOKEN) as token:
        assert token.post("/tenants", json={"name": "acme"}).status_code == 201
        yield Team(server, token, {})


def lines(api: httpx.Client, **wanted: Any) -> list[dict[str, Any]]:
    answer = api.get("/audit", params=wanted)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def ostler(team: Team, *words: str) -> Result:
    return CliRunner().invoke(root, ["--endpoint", team.server.url, "--token", TOKEN, "audit", *words])


def test_a_change_is_a_line_with_who_what_and_where(team: Team) -> None:
    made = team.token.post("/sessions", json={"agent": "mock"}).json()
    (line, *_) = lines(team.token, action="sessions.create")
    wanted = {"actor": "token", "outcome": "done", "status": 201, "target": made["id"], "client": "127.0.0.1"}
    assert {name: line[name] for name in wanted} == wanted
    assert team.token.delete(f"/sessions/{made['id']}").status_code == 204
    assert lines(team.token)[0]["action"] == "sessions.delete"
    assert lines(team.token)[0]["target"] == made["id"]


def test_reading_and_what_fails_by_itself_is_no_line(team: Team) -> None:
    before = lines(team.token)[0]["number"]
    assert team.token.get("/sessions").status_code == 200
    assert_problem(team.token.delete("/sessions/nothing"), "session_not_found")
    assert_problem(team.token.post("/tenants", json={"name": "acme"}), "name_taken")
    assert lines(team.token)[0]["number"] == before


def test_refused_attempts_are_lines_and_those_of_one_kind_are_counted(team: Team) -> None:
    with (
        client_of(team.server, new_key(team.token, "reader", "viewer", "default")) as viewer,
        httpx.Client(base_url=f"{team.server.url}/api/v1") as stranger,
    ):
        actor = viewer.get("/me").json()["actor"]
        for _ in range(3):
            assert viewer.post("/sessions", json={"agent": "mock"}).status_code == 403
        assert viewer.get("/projects", headers={"ostler-project": "acme/default"}).status_code == 404
        assert stranger.get("/sessions").status_code == 401
        assert stranger.post("/sessions", json={}).status_code == 401
    wait_until(lambda: lines(team.token, actor="unknown") != [], what="the line")
    refused = lines(team.token, actor=actor)
    assert [(each["action"], each["status"]) for each in refused] == [
        ("projects.list", 404),
        ("sessions.create", 403),
    ]
    (unknown,) = lines(team.token, actor="unknown")
    assert (unknown["action"], unknown["outcome"], unknown["status"]) == ("sessions.list", "refused", 401)


def test_a_tenant_sees_only_its_own_lines_and_only_its_admins_do(team: Team) -> None:
    acme = {"ostler-project": "acme/default"}
    admin = client_of(team.server, new_key(team.token, "acme", "admin", **acme))
    member = client_of(team.server, new_key(team.token, "one", "admin", "acme/default", **acme))
    with admin, member:
        assert admin.post("/projects", json={"name": "shop"}).status_code == 201
        assert {each["tenant"] for each in lines(admin)} == {"acme"}
        assert [each["number"] for each in lines(admin)] == [3, 2, 1]
        assert_problem(member.get("/audit"), "forbidden")
        assert_problem(member.get("/audit/export"), "forbidden")


def test_a_delivery_is_a_line_of_the_tenant_of_its_trigger(team: Team) -> None:
    with client_of(team.server, TOKEN) as acme:
        acme.headers["ostler-project"] = "acme/default"
        push(acme)
        made = create(acme, "issues", paused=True)
        assert send(acme, made, {"action": "opened"}, "one").status_code == 202
        (line,) = lines(acme, action="triggers.deliver")
        assert (line["actor"], line["target"], line["project"]) == (
            "trigger",
            made["id"],
            acme.get("/me").json()["project"],
        )
    assert lines(team.token, action="triggers.deliver") == []


def test_each_use_of_a_secret_is_a_line_that_names_it(team: Team) -> None:
    env = {"DEPLOY_TOKEN": "very-secret-value-1", "REGION": "eu"}
    session = team.token.post("/sessions", json={"agent": "mock", "env": env}).json()["id"]
    assert lines(team.token, action="secrets.use") == []
    assert team.token.post(f"/sessions/{session}/messages", json={"message": "mock: say hi"}).is_success
    wait_until(lambda: lines(team.token, action="secrets.use") != [], what="the line")
    (line,) = lines(team.token, action="secrets.use")
    assert (line["actor"], line["outcome"], line["target"]) == ("token", "done", f"{session} env.DEPLOY_TOKEN")
    assert "very-secret" not in team.token.get("/audit/export").text


def test_pages_and_exports_hold_every_line_once(team: Team) -> None:
    for number in range(5):
        assert team.token.post("/prompts", json={"name": f"p{number}", "text": "x"}).status_code == 201
    first = team.token.get("/audit", params={"limit": 3}).json()
    rest = lines(team.token, before=first["nextBefore"], limit=1000)
    exported = ostler(team, "export").stdout.splitlines()
    assert len(exported) == len(first["items"]) + len(rest) == first["head"]["number"]
    assert ostler(team, "export", "--after", str(first["head"]["number"] - 1)).stdout.splitlines() == exported[-1:]
    assert "prompts.save" in ostler(team, "list", "--action", "prompts.save").stdout


def test_a_repeated_request_is_one_line(team: Team) -> None:
    for _ in range(2):
        body = {"name": "once", "text": "x"}
        assert team.token.post("/prompts", json=body, headers={"idempotency-key": "k1"}).status_code == 201
    assert [each["target"] for each in lines(team.token, action="prompts.save")].count("once") == 1


@pytest.mark.parametrize("name", ["since", "until"])
def test_a_time_that_is_none_is_refused_by_name(team: Team, name: str) -> None:
    assert name in str(assert_problem(team.token.get("/audit", params={name: "yesterday"}), "invalid_request"))


def test_what_was_changed_in_the_database_is_found(team: Team, state: Path, tmp_path: Path) -> None:
    whole = ostler(team, "verify")
    assert whole.exit_code == 0, whole.output
    head = whole.stdout.strip().rpartition("Head: ")[2]
    export = tmp_path / "audit.ndjson"
    export.write_text(ostler(team, "export").stdout)
    assert ostler(team, "verify", str(export), "--head", head).exit_code == 0
    assert ostler(team, "verify", "--head", "1:" + "a" * 64).exit_code == 1
    with closing(sqlite3.connect(state / "ostler.db")) as database:
        database.execute("UPDATE audit SET actor = 'key:other' WHERE tenant = 'default' AND number = 2")
        database.commit()
    spoilt = ostler(team, "verify")
    assert (spoilt.exit_code, "Line 2 was changed" in spoilt.output) == (1, True)
    with closing(sqlite3.connect(state / "ostler.db")) as database:
        database.execute("DELETE FROM audit WHERE tenant = 'default' AND number = 2")
        database.commit()
    assert "Line 2 is not there" in ostler(team, "verify").output
