"""Real programs, a scripted model: every agent does everything it says it can."""

from pathlib import Path

import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.behaviours import BEHAVIOURS, BY_ID, has
from ostler.conformance.rows import row_of
from ostler.conformance.suite import play
from tools.agent_cache import Search

LARGE = frozenset({"kimi", "openhands", "vibe"})
"""Take minutes to install or to start; only `make conformance` runs them, which commits what it finds."""

IN_EVERY_RUN = frozenset({"claude-code-text", "codex-text", "opencode-text", "ostler-text"})
"""A turn of one agent for each way of talking to a process; all else is for the lane of the agents."""

AGENTS = {adapter.info.id: adapter for adapter in ADAPTERS if adapter.info.id not in LARGE}
_AGENTS = pytest.mark.lane("agents")
GRID = [
    pytest.param(name, behaviour.id, id=case, marks=[] if case in IN_EVERY_RUN else [_AGENTS])
    for name, adapter in AGENTS.items()
    for behaviour in BEHAVIOURS
    if has(adapter.info.capabilities, behaviour) and behaviour.id not in row_of(adapter).without
    for case in [f"{name}-{behaviour.id}"]
]


@pytest.mark.timeout(600)  # the agents may have to be installed first
@pytest.mark.parametrize(("name", "behaviour"), GRID)
async def test_the_agent_behaves(name: str, behaviour: str, tmp_path: Path, search: Search) -> None:
    stage = search.suite(AGENTS[name]).stage(BY_ID[behaviour], tmp_path)
    assert (await play(BY_ID[behaviour], stage), stage.unparsed) == (None, [])


@_AGENTS
@pytest.mark.parametrize("name", ["opencode"])
async def test_nothing_is_downloaded_for_a_session(name: str, tmp_path: Path, search: Search) -> None:
    async with search.suite(AGENTS[name]).stage(BY_ID["text"], tmp_path).agent() as agent:
        await agent.turn("say one")
        await agent.remembered()
    libraries = tmp_path / "home" / ".config" / "opencode" / "node_modules"
    assert [path.name for path in libraries.iterdir()] == [".ostler"]
    assert not (tmp_path / "home" / ".npm").exists()
