"""Tools and skills of the daemon API: kept with a folder, and given with a session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer


@pytest.fixture
def v1(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as client:
        yield client


def skill(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}.\n---\n{text}\n")


def instructions(server: RunningServer, v1: httpx.Client, **body: Any) -> str:
    """What the agent of a new session is told."""
    session = f"skilled-{uuid4()}"
    answer = v1.post(f"/sessions/{session}", json={"agent": "mock", **body})
    assert (answer.status_code, answer.json()["healthy"]) == (200, True)
    shown = httpx.get(f"{server.url}/api/v1/sessions/{session}", timeout=60).json()
    return str(shown["instructions"])


def test_skills_of_a_folder_are_instructions_of_the_agent(
    server: RunningServer, v1: httpx.Client, tmp_path: Path
) -> None:
    skill(tmp_path / "skills" / "tea", "tea", "Warm the pot.")
    skill(tmp_path / "skills" / "coffee", "coffee", "Grind the beans.")
    both = instructions(server, v1, skills={"sources": [{"type": "local", "source": str(tmp_path)}]})
    assert "Warm the pot." in both
    assert "Grind the beans." in both
    assert f"{tmp_path}/skills/tea" in both
    chosen = {"type": "local", "source": "skills", "skills": ["tea"]}
    one = instructions(server, v1, directory=str(tmp_path), skills={"sources": [chosen]})
    assert "Warm the pot." in one
    assert "Grind the beans." not in one


@pytest.mark.parametrize(
    ("source", "code", "field"),
    [
        ({"type": "github", "source": "some/skills"}, "invalid_request", "skills"),
        ({"type": "local", "source": "skills"}, "invalid_request", "skills"),
        ({"type": "local", "source": "{folder}"}, "invalid_request", "skills"),
        ({"type": "local", "source": "{folder}/one", "skills": ["tea"]}, "invalid_request", "skills"),
        ({"type": "local", "source": "/etc"}, "path_refused", None),
    ],
    ids=str,
)
def test_a_source_without_its_skills_is_refused_and_nothing_is_created(
    v1: httpx.Client, tmp_path: Path, source: dict[str, Any], code: str, field: str | None
) -> None:
    skill(tmp_path / "one" / "coffee", "coffee", "Grind the beans.")
    (tmp_path / "empty").mkdir()
    wanted = {**source, "source": source["source"].format(folder=tmp_path)}
    session = f"bad-{uuid4()}"
    refused = v1.post(f"/sessions/{session}", json={"agent": "mock", "skills": {"sources": [wanted]}})
    assert_problem(refused, code, field=field)
    assert_problem(v1.get(f"/sessions/{session}/events"), "session_not_found")


def test_what_is_kept_is_held_to_its_shape_and_to_folders_that_may_be_used(v1: httpx.Client, tmp_path: Path) -> None:
    here = {"directory": str(tmp_path), "mcpName": "notes"}
    assert_problem(v1.get("/config/mcp", params={"directory": str(tmp_path)}), "invalid_request", field="mcpName")
    assert_problem(v1.put("/config/mcp", params=here, json={"type": "smoke"}), "invalid_request")
    assert_problem(v1.get("/config/mcp", params={**here, "directory": "here"}), "invalid_request", field="directory")
    (tmp_path / ".sandbox-agent" / "config").mkdir(parents=True)
    (tmp_path / ".sandbox-agent" / "config" / "mcp.json").write_text("[1]")
    broken = assert_problem(v1.get("/config/mcp", params=here), "unprocessable")
    assert "mcp.json is no JSON object of entries" in broken["detail"]
    assert v1.put("/config/mcp", params=here, json={"type": "local", "command": "x"}).status_code == 422
