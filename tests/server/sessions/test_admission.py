"""What a session may not bring along, and how it is told."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.serving import running_server
from tests.support.talk import Talk


def refused(api: httpx.Client, **body: Any) -> dict[str, Any]:
    """The problem that a session with this is refused with."""
    answer = api.post("/sessions", json={"agent": "mock", **body})
    assert answer.status_code in {400, 422}, answer.text
    problem: dict[str, Any] = answer.json()
    return problem


LOADERS = [
    *(
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PATH",
        "HOME",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "ENV",
    ),
    *("GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "DYLD_INSERT_LIBRARIES", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS"),
    *("XDG_CONFIG_HOME", "OSTLER_TOKEN", "npm_config_prefix"),
]


@pytest.mark.parametrize("name", LOADERS)
def test_a_variable_that_decides_what_runs_is_refused_with_the_next_step(api: httpx.Client, name: str) -> None:
    problem = refused(api, env={"FINE": "x", name: "/tmp/evil.so"})
    assert list(problem["errors"]) == [f"env.{name}"]
    assert f"--allowed-env {name}" in problem["detail"]
    assert "evil" not in problem["detail"]


@pytest.mark.parametrize("name", ["", "A=B", "A\nB", "A\0B", "A B", "1A", "A-B", "é", "x" * 300])
def test_a_variable_that_is_none_is_refused(api: httpx.Client, name: str) -> None:
    assert_problem(api.post("/sessions", json={"agent": "mock", "env": {name: "x"}}), "invalid_request")


def test_the_operator_may_allow_a_variable(state_dir: Path) -> None:
    with (
        running_server(state_dir, "--allowed-env", "GIT_AUTHOR_*") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        Talk(api, env={"GIT_AUTHOR_NAME": "Me", "HTTPS_PROXY": "http://proxy:1"})
        refused(api, env={"GIT_SSH_COMMAND": "x"})
        refused(api, env={"GIT_AUTHOR_NAME\n": "x"})


NO_NAMES = ["--dangerously-skip-permissions", "-x", "", " a", "a\nb", "a\0b", "a;b", "$(id)", "a" * 300, "é"]


@pytest.mark.parametrize("value", NO_NAMES)
@pytest.mark.parametrize("field", ["model", "variant", "mode"])
def test_a_choice_that_could_be_an_option_is_refused(api: httpx.Client, field: str, value: str) -> None:
    problem = refused(api, agent="pi", **{field: value})
    assert problem["code"] == "invalid_request"
    assert list(problem["errors"]) == [field]


@pytest.mark.parametrize("value", ["openrouter/a/b-3.5:beta", "opus[1m]", "us.anthropic.claude-v1:0", "@cf/x/y"])
def test_names_of_models_are_left_alone(api: httpx.Client, value: str) -> None:
    answer = api.post("/sessions", json={"agent": "mock", "model": value})
    assert "not a name" not in answer.json()["detail"]


@pytest.mark.parametrize("name", ["--x", "a\nb", "", "a;b"])
def test_a_name_of_an_mcp_server_that_is_none_is_refused(api: httpx.Client, name: str) -> None:
    server = {"type": "stdio", "command": "true"}
    assert list(refused(api, mcpServers={name: server})["errors"]) == ["mcpServers"]
    bad = {**server, "env": {"A\nB": "x"}}
    assert list(refused(api, mcpServers={"fine": bad})["errors"]) == ["mcpServers.fine.env.A\nB"]


@pytest.mark.parametrize("path", ["/etc", "/etc/../etc", "/", "/no/such/folder", "/etc/passwd"])
def test_a_folder_to_work_in_follows_the_rule_of_folders_to_copy(api: httpx.Client, path: str) -> None:
    as_cwd = refused(api, cwd=path)
    as_copy = refused(api, repo={"mode": "folder", "path": path})
    assert as_cwd["code"] == as_copy["code"] == "repository_refused"
    assert as_cwd["detail"] == as_copy["detail"]
    assert f"--repository-folder {path}" in as_cwd["detail"]
    assert [*as_cwd["errors"], *as_copy["errors"]] == ["cwd", "repo.path"]


def test_a_link_out_of_an_allowed_folder_is_refused(api: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    assert refused(api, cwd=str(tmp_path / "out"))["code"] == "repository_refused"


def test_the_servers_own_state_is_never_below_an_allowed_folder(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    named = other / "named"
    named.mkdir(parents=True)
    allowed = {"OSTLER_REPOSITORY_FOLDERS": f"{tmp_path},{named}"}
    with (
        running_server(other, env=allowed) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as own,
    ):
        (other / "below").mkdir()
        for folder in (other, other / "below"):
            assert refused(own, cwd=str(folder))["code"] == "repository_refused"
        Talk(own, cwd=str(named)).turn("mock: say named on purpose")


def test_without_any_allowed_folder_sessions_still_have_one_of_their_own(state_dir: Path, tmp_path: Path) -> None:
    with (
        running_server(state_dir, env={"OSTLER_REPOSITORY_FOLDERS": ""}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        Talk(api).turn("mock: say hi")
        assert refused(api, cwd=str(tmp_path))["code"] == "repository_refused"


def test_on_a_machine_of_ones_own_the_home_folder_is_there_without_a_setting(state_dir: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("shop", ".keys", "elsewhere"):
        (home / name).mkdir(parents=True)
    (home / "way-out").symlink_to(tmp_path)
    unset = {"OSTLER_REPOSITORY_FOLDERS": "", "HOME": str(home)}
    with (
        running_server(home / "state", env=unset) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        Talk(api, cwd=str(home / "shop")).turn("mock: say hi")
        for folder in (home, home / ".keys", home / "state", home / "way-out", tmp_path):
            assert refused(api, cwd=str(folder))["code"] == "repository_refused"
    with (
        running_server(state_dir, env={**unset, "OSTLER_ALLOWED_HOSTS": "ostler.example"}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        assert refused(api, cwd=str(home / "shop"))["code"] == "repository_refused"


@pytest.mark.parametrize("kind", ["file_ref", "image"])
def test_a_prompt_names_files_of_its_session_and_of_allowed_folders_only(
    state_dir: Path, tmp_path: Path, kind: str
) -> None:
    home = tmp_path / "home"
    (home / "shop").mkdir(parents=True)
    (home / "shop" / "menu.png").write_bytes(b"x")
    (home / ".keys").mkdir()
    (home / ".keys" / "id.png").write_bytes(b"x")
    unset = {"OSTLER_REPOSITORY_FOLDERS": "", "HOME": str(home)}
    with (
        running_server(state_dir, env=unset) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        talk, other = Talk(api), Talk(api)
        talk.turn("mock: write own.png x\nmock: run ln -s /etc/hostname way-out.png")
        other.turn("mock: write own.png x")
        cwd, elsewhere = talk.created["cwd"], other.created["cwd"]
        for path in (f"{cwd}/own.png", str(home / "shop" / "menu.png")):
            receipt = talk.post("/messages", parts=[{"type": kind, "path": path}])
            assert receipt.status_code == 202, receipt.text
            talk.until_type("turn.ended")
        for path in (f"{cwd}/way-out.png", f"{elsewhere}/own.png", str(home / ".keys" / "id.png"), "/etc/passwd"):
            problem = assert_problem(talk.post("/messages", parts=[{"type": kind, "path": path}]), "unprocessable")
            assert list(problem["errors"]) == ["parts[0].path"]
            assert "repository_folders" in problem["detail"]
