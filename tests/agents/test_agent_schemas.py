"""The schemas of agents' frames: what was recorded fits, and what cannot be fetched falls back to recordings."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft7Validator

from tools import agent_schemas
from tools.agent_schemas import AGENTS, OUT, PUBLISHED, Types, heard, reduced, schema_of, tag_of

NOT_PUBLISHED = {
    "opencode": {"server.heartbeat"},
    "pi": {"message_start", "message_end", "response/get_session_stats"},
}
"""Frames that an agent sends and its types do not have: the system's message of Pi, and a window that is not known."""


def schema(agent: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OUT / f"{agent}.json").read_text())
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_every_recorded_frame_fits_the_schema_of_its_agent(agent: str) -> None:
    validator = Draft7Validator(schema(agent))
    strange = {tag_of(frame) for frame in heard(agent) if not validator.is_valid(frame)}
    assert strange == NOT_PUBLISHED.get(agent, set())


@pytest.mark.parametrize("agent", PUBLISHED)
def test_published_types_are_where_a_schema_is_from_and_it_refuses_what_they_do_not_know(agent: str) -> None:
    found = schema(agent)
    assert found["x-from"] == f"{PUBLISHED[agent].package} {PUBLISHED[agent].version}"
    assert not Draft7Validator(found).is_valid({"type": "surprise"})


def test_a_package_that_cannot_be_had_leaves_the_file_that_is_there_or_one_from_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = Types(package="file:nowhere", version="1", files={"x.js": ("Event",)})
    monkeypatch.setitem(PUBLISHED, "pi", nowhere)
    monkeypatch.setattr(agent_schemas, "OUT", tmp_path / "out")
    monkeypatch.setattr(agent_schemas, "WORK", tmp_path / "work")
    monkeypatch.setenv("PATH", "")
    assert agent_schemas.written("pi") == "pi: from its recordings"
    assert "pi.json stays" in agent_schemas.written("pi")
    assert json.loads((tmp_path / "out" / "pi.json").read_text())["anyOf"] == schema_of(heard("pi"))["anyOf"]


def test_types_are_reduced_to_names_and_kinds_and_to_what_is_used() -> None:
    whole = {
        "anyOf": [{"$ref": "#/definitions/A"}],
        "definitions": {
            "A": {
                "type": "object",
                "description": "words",
                "additionalProperties": False,
                "properties": {"type": {"type": "string", "const": "a"}, "description": {"type": "string"}},
                "required": ["type", "description"],
            },
            "B": {"type": "string"},
        },
    }
    assert reduced(whole)["definitions"] == {
        "A": {
            "type": "object",
            "properties": {"type": {"type": "string", "const": "a"}, "description": {"type": "string"}},
            "required": ["type"],
        }
    }
