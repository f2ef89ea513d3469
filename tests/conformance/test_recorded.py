"""Recordings of real agents: the same cases pass, and without one line of a translator's table exactly one fails."""

from pathlib import Path
from typing import Any

import pytest

from ostler.agents import ADAPTERS
from ostler.agents.acp import frames as acp
from ostler.agents.acp import updates as acp_updates
from ostler.agents.claude_code import translator as claude_code
from ostler.agents.codex import events as codex_events
from ostler.agents.codex import items as codex_items
from ostler.agents.codex import thread as codex
from ostler.conformance.behaviours import BY_ID
from ostler.conformance.suite import play
from tests.conformance.replay import ReplayStage
from tests.support.recorded import Recording, read

FOLDER = Path(__file__).parents[1] / "fixtures" / "conformance"
AGENTS = {adapter.info.id: adapter for adapter in ADAPTERS}
RECORDINGS = {
    folder.name: {path.stem: read(folder.name, path) for path in sorted(folder.glob("*.jsonl"))}
    for folder in sorted(FOLDER.iterdir())
}
GRID = [
    pytest.param(recording, id=f"{agent}-{case}")
    for agent, recordings in RECORDINGS.items()
    for case, recording in recordings.items()
]


async def played(recording: Recording, folder: Path, patience: float = 10.0) -> tuple[str | None, list[str]]:
    """Why a recorded behaviour does not come out of the translator, if it does not, and which frames it cannot read."""
    stage = ReplayStage(AGENTS[recording.agent], recording, folder, patience=patience)
    return await play(BY_ID[recording.case], stage), stage.unparsed


@pytest.mark.parametrize("recording", GRID)
async def test_a_recorded_agent_behaves(recording: Recording, tmp_path: Path) -> None:
    assert await played(recording, tmp_path) == (None, [])


@pytest.mark.parametrize(
    ("agent", "table", "entry", "behaviour"),
    [
        pytest.param("claude-code", claude_code.HANDLERS, "system/init", "resume", id="claude-code"),
        pytest.param(
            "codex",
            codex_events.NOTIFICATIONS,
            "item/commandExecution/outputDelta",
            "command.output",
            id="codex-notification",
        ),
        pytest.param("codex", codex_items.USES, codex.McpToolCall, "mcp", id="codex-item"),
        pytest.param("gemini", acp_updates.UPDATES, acp.AgentThoughtChunk, "reasoning", id="acp"),
    ],
)
async def test_without_one_line_of_its_table_exactly_one_behaviour_is_gone(
    agent: str, table: dict[Any, Any], entry: Any, behaviour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(table, entry)
    failures = {case: await played(each, tmp_path, 1.0) for case, each in RECORDINGS[agent].items()}
    assert [case for case, (reason, _) in failures.items() if reason is not None] == [behaviour]
