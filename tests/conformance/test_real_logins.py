"""Logins of the real programs, as far as they go without their services."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conformance.issuer import CODE, Issuer, running_issuer
from tests.support.guest import Door
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk
from tools.agent_cache import Search

_AGENTS = ("codex", "claude-code", "copilot", "gemini", "kimi", "openhands", "qwen", "vibe")
_SHARED = {"codex": ".codex/auth.json", "copilot": ".copilot/config.json", "kimi": ".kimi-code/credentials"}
"""What a session shares with the login."""
_TO_STUB = """#!/bin/sh
export CODEX_APP_SERVER_LOGIN_ISSUER={issuer}
export KIMI_CODE_OAUTH_HOST={issuer} KIMI_CODE_BASE_URL={issuer}/v1
export COPILOT_PKG_CACHE_HOME={unpacked}
export HTTPS_PROXY=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
case " $* " in *" login --device-code ") set -- "$@" --host {issuer} ;; esac
exec "$@"
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture(scope="module")
def api(search: Search, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("logins")
    program = folder / "to-stub"
    program.write_text(_TO_STUB.format(issuer=issuer.url, unpacked=folder / "unpacked"))
    program.chmod(0o755)
    found = {name: search.installer.current(name) for name in _AGENTS}
    more = {"codex": ["-c", f'chatgpt_base_url="{issuer.url}/backend-api"']}
    named = {
        name: {"command": [str(program), *installed.command, *more.get(name, ())]}
        for name, installed in found.items()
        if installed is not None
    }
    with (
        running_server(folder / "state", env={"OSTLER_AGENTS": json.dumps(named)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as client,
    ):
        yield client


def wait_for_way(door: Door, way: str) -> None:
    """Until the program has told its one way; a first start on a busy machine may take longer than it is given."""

    def ways() -> list[str | None]:
        return [offer.get("way") for offer in door.look()["offers"] if offer["method"] == "subscription"]

    wait_until(lambda: ways() == [way], what=f"the agent tells of '{way}'", seconds=180)


@pytest.mark.parametrize("name", ["codex", "copilot", "kimi"])
def test_an_agent_is_logged_in_by_a_device_code(api: httpx.Client, issuer: Issuer, name: str) -> None:
    issuer.approved.clear()
    door = Door(api, name)
    assert door.look()["state"] == "needs_login"
    assert door.post(method="subscription").status_code == 200
    wait_until(lambda: door.running().get("url", "").startswith(issuer.url), what="an address is shown")
    running = door.running()
    assert CODE in (running.get("code"), running["url"].partition("=")[2]), running
    issuer.approved.set()
    assert door.ended()["step"] == "succeeded", door.running()
    found = door.look()
    assert (found["state"] in {"ready", "unknown"}, found["method"]) == (True, "subscription")
    talk = Talk(api, agent=name)
    shared = Path(talk.get()["cwd"]).parent / "home" / _SHARED[name]
    talk.send("hello")
    wait_until(shared.is_symlink, what="the session shares the login")
    talk.post("/cancel")
    door.leave()
    assert door.look()["state"] == "needs_login"


@pytest.mark.parametrize("name", ["codex"])
def test_codex_says_itself_that_it_is_logged_in_and_gives_up_when_told(
    api: httpx.Client, issuer: Issuer, name: str
) -> None:
    issuer.approved.clear()
    door = Door(api, name)
    assert door.post(method="subscription").status_code == 200
    wait_until(lambda: door.running().get("code") == CODE, what="Codex shows a code")
    assert door.post("/cancel").json()["running"]["step"] == "cancelled"
    assert door.look()["state"] == "needs_login"
    assert door.post(method="subscription").status_code == 200
    issuer.approved.set()
    assert door.ended()["step"] == "succeeded"
    found = door.look()
    assert (found["state"], "login status" in found["reason"]) == ("ready", True)
    door.leave()


@pytest.mark.parametrize("name", ["copilot"])
def test_copilot_is_not_logged_in_by_a_login_that_was_cancelled_or_refused(
    api: httpx.Client, issuer: Issuer, name: str
) -> None:
    issuer.approved.clear()
    door = Door(api, name)
    for _ in range(2):  # nothing of the first is in the way of the second
        assert door.post(method="subscription").status_code == 200
        wait_until(lambda: door.running().get("code") == CODE, what="Copilot shows a code")
        assert door.post("/cancel").json()["running"]["step"] == "cancelled"
        assert door.look()["state"] == "needs_login"
    issuer.refused.set()
    assert door.post(method="subscription").status_code == 200
    ended = door.ended()
    issuer.refused.clear()
    assert (ended["step"], "Login failed" in ended["message"]) == ("failed", True), ended
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


@pytest.mark.parametrize("name", ["gemini"])
def test_gemini_shows_an_address_and_another_one_after_a_wrong_code(api: httpx.Client, name: str) -> None:
    door = Door(api, name)
    wait_for_way(door, "oauth-personal")
    first = door.started()["url"]
    assert first.startswith("https://accounts.google.com/")
    door.post("/answer", code="wrong")
    wait_until(lambda: door.running().get("url") != first, what="Gemini begins again")
    assert door.post("/cancel").json()["running"]["step"] in {"cancelled", "failed"}
    assert door.look()["state"] == "needs_login"


if os.environ.get("OSTLER_LARGE_AGENTS"):  # they need a newer Python than the tests do, and take minutes to install

    @pytest.mark.parametrize(
        ("name", "way", "words"),
        [("vibe", "browser-auth", "browser sign-in"), ("openhands", "oauth", "Authentication failed")],
    )
    def test_an_agent_that_cannot_reach_its_service_says_so(api: httpx.Client, name: str, way: str, words: str) -> None:
        door = Door(api, name)
        wait_for_way(door, way)
        door.post(method="subscription")
        ended = door.ended()
        assert (ended["step"], words in ended["message"]) == ("failed", True), ended
        assert door.look()["state"] == "needs_login"


@pytest.mark.parametrize("name", ["qwen"])
def test_qwen_only_takes_a_key(api: httpx.Client, name: str) -> None:
    methods = [offer["method"] for offer in Door(api, name).look()["offers"]]
    assert methods == ["machine", "key", "session"]
