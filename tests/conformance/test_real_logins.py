"""Logins of the real programs, as far as they go without their services."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conformance.issuer import CODE, Issuer, running_issuer
from tests.logins.guest import Door
from tests.server.talk import Talk
from tests.serving import running_server, wait_until
from tools.agent_cache import Search

_TO_STUB = """#!/bin/sh
[ "$1" = login ] && [ "$2" = --device-auth ] && exec {codex} "$@" --experimental_issuer {issuer}
exec {codex} "$@"
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture(scope="module")
def api(search: Search, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("logins")
    named = {}
    for name in ("codex", "claude-code"):
        if (found := search.installer.current(name)) is not None:
            named[name] = {"command": list(found.command)}
    if "codex" in named:
        program = folder / "codex"
        program.write_text(_TO_STUB.format(codex=shlex.join(named["codex"]["command"]), issuer=issuer.url))
        program.chmod(0o755)
        named["codex"] = {"command": [str(program)]}
    with (
        running_server(folder / "state", env={"OSTLER_AGENTS": json.dumps(named)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as client,
    ):
        yield client


@pytest.mark.parametrize("name", ["codex"])
def test_codex_is_logged_in_by_a_device_code(api: httpx.Client, issuer: Issuer, name: str) -> None:
    door = Door(api, name)
    assert door.look()["state"] == "needs_login"
    assert door.post(method="subscription").status_code == 200
    wait_until(lambda: door.running().get("code") is not None, what="Codex shows a code")
    running = door.running()
    assert (running["code"], running["url"].startswith(issuer.url)) == (CODE, True), running
    issuer.approved.set()
    assert door.ended()["step"] == "succeeded"
    found = door.look()
    assert (found["state"], found["method"]) == ("ready", "subscription")
    assert "login status" in found["reason"]
    talk = Talk(api, agent=name)
    shared = Path(talk.get()["cwd"]).parent / "home" / ".codex" / "auth.json"
    talk.send("hello")
    wait_until(shared.is_symlink, what="the session shares the login")
    talk.post("/cancel")
    door.leave()
    assert door.look()["state"] == "needs_login"


@pytest.mark.parametrize("name", ["claude-code"])
def test_claude_code_shows_an_address_and_refuses_a_wrong_code(api: httpx.Client, name: str) -> None:
    door = Door(api, name)
    assert door.look()["state"] == "needs_login"
    running = door.started()
    assert running["url"].startswith("https://"), running
    assert "code_challenge=" in running["url"]
    door.post("/answer", code="wrong#code")
    ended = door.ended()
    assert ended["step"] == "failed"
    assert "fail" in ended["message"].lower(), ended
    door.started()
    assert door.post("/cancel").json()["running"]["step"] == "cancelled"
    assert door.look()["state"] == "needs_login"
