"""Real binaries, a scripted model: every agent does everything it says it can."""

import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from ostler.wire.providers import StdioMcpServer
from tests.conformance import rows
from tests.conformance.behaviours import BEHAVIOURS, BY_ID, has
from tests.conformance.cases import CASES, MCP_SERVER, PYTHON
from tests.conformance.driver import Row, driven, said
from tests.conformance.programs import Search

SPECIAL: dict[str, dict[str, Any]] = {
    "permission.bypass": {"permission_mode": "bypass"},
    "plan.approve": {"permission_mode": "plan"},
    "mcp": {"mcp_servers": {"echo": StdioMcpServer(command=PYTHON, args=(MCP_SERVER,))}},
}
"""How the session must be made for these."""

LARGE = frozenset({"kimi", "openhands", "vibe"})
"""Take minutes to install or to start; only `make conformance` runs them."""
LEFT_OUT = frozenset[str]() if os.environ.get("OSTLER_ALL_AGENTS") else LARGE

ROWS: dict[str, Row] = {
    found.name: importlib.import_module(f"tests.conformance.rows.{found.name}").ROW
    for found in pkgutil.iter_modules(rows.__path__)
    if found.name not in LEFT_OUT
}
GRID = [
    pytest.param(name, behaviour.id, id=f"{name}-{behaviour.id}")
    for name, row in ROWS.items()
    for behaviour in BEHAVIOURS
    if behaviour.id in CASES and has(row.adapter.info.capabilities, behaviour)
]


def test_every_behaviour_has_a_case_and_every_case_a_behaviour() -> None:
    assert set(CASES) | {"resume"} == set(BY_ID)


@pytest.mark.parametrize(("name", "behaviour"), GRID)
async def test_the_agent_behaves(name: str, behaviour: str, tmp_path: Path, search: Search) -> None:
    async with driven(ROWS[name], tmp_path, search=search, **SPECIAL.get(behaviour, {})) as agent:
        await CASES[behaviour](agent)


@pytest.mark.parametrize("name", ROWS)
async def test_a_new_process_goes_on_with_the_agents_own_memory(name: str, tmp_path: Path, search: Search) -> None:
    async with driven(ROWS[name], tmp_path, search=search) as agent:
        await agent.turn("say one")
        native = await agent.remembered()
    async with driven(ROWS[name], tmp_path, search=search, resume=native, start=2) as agent:
        assert "2 scripted user turns" in said(await agent.turn("recall"))
