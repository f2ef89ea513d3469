"""Real programs for the runs: Claude Code and Pi from the suite's cache, with a scripted model."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.chaos.chaos_run import Run
from tools.agent_cache import cached_agents

AGENTS = ("claude-code", "pi")


def installed() -> dict[str, str]:
    """Settings that name the programs, installed first unless they are in the cache."""
    search = cached_agents()
    adapters = [adapter for adapter in ADAPTERS if adapter.info.id in AGENTS]
    search.install(adapters, lambda line: print(line, file=sys.stderr, flush=True))
    named = {}
    for adapter in adapters:
        search.suite(adapter)  # raises if it could not be installed
        current = search.installer.current(adapter.info.id)
        assert current is not None
        named[adapter.info.id] = {"command": list(current.command)}
    return {"OSTLER_AGENTS": json.dumps(named)}


@contextmanager
def real_agents(run: Run) -> Iterator[None]:
    """Let some of the people work with real agents."""
    with ScriptedModel() as model:
        for agent in AGENTS:
            row = ROWS[agent]
            provider = {"type": str(row.provider), "base_url": model.url, "api_key": "sk-test"}
            run.add_agent(agent, provider, **({"model": row.model} if row.model else {}))
        yield
