"""Cold and warm start of each real agent: from the first prompt of a new session to the agent's first words.

Agents are installed into the cache that the tests use. The model is the scripted one on this machine, so the figures
are the agents' and Ostler's own.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.scale import Scale
from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.conformance.rows import row_of
from ostler.conformance.stage import Row
from tests.support.serving import running_server

ROOT = Path(__file__).parents[1]
PATIENCE = 120.0
PROMPTS = {"mock": "mock: say hello"}  # left alone it takes its time, to look like an agent
HEAD = """From the first prompt of a new session to the agent's first words, median of {rounds}; the model answers at
once, from this machine. Warm: the setting `warm_agents` is on, and a session like this one was started before.

| agent | cold | warm | ratio |
|---|--:|--:|--:|
"""


@contextmanager
def server(folder: Path, cache: Path, *args: str) -> Iterator[httpx.Client]:
    """A server that has the agents of the cache."""
    state = folder / "state"
    state.mkdir(parents=True)
    (state / "agents").symlink_to(cache)
    with (
        running_server(state, *args) as running,
        httpx.Client(base_url=f"{running.url}/api/v1", timeout=PATIENCE) as api,
    ):
        yield api


def first_words(api: httpx.Client, row: Row, agent: str, url: str, cwd: Path) -> float:
    """Seconds from the first prompt of a new session to its first delta."""
    body: dict[str, Any] = {"agent": agent, "cwd": str(cwd), "env": row.variables(url), "permissionMode": "bypass"}
    if row.provider:
        body["provider"] = {"type": row.provider, "baseUrl": url, "apiKey": "sk-test"}
    if row.model:
        body["model"] = row.model
    session = api.post("/sessions", json=body).raise_for_status().json()["id"]
    began = time.perf_counter()
    api.post(f"/sessions/{session}/messages", json={"message": PROMPTS.get(agent, "Say hello.")}).raise_for_status()
    with api.stream("GET", f"/sessions/{session}/events/sse") as events:
        for line in events.iter_lines():
            if '"type":"item.delta"' in line:
                took = time.perf_counter() - began
            if '"type":"turn.ended"' in line:
                break
    api.post(f"/sessions/{session}/stop")
    return took


def measure(adapter: Adapter, cache: Path, rounds: int, *, warm: bool) -> float:
    """The median of some starts, in milliseconds."""
    row, agent = row_of(adapter), adapter.info.id
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cwd = folder / "work"
        cwd.mkdir()
        model = stack.enter_context(row.service())
        flags = ("--warm-agents", "1" if warm else "0", "--repository-folder", str(folder))
        api = stack.enter_context(server(folder, cache, *flags))
        api.post(f"/agents/{agent}/install", timeout=900).raise_for_status()
        took = []
        for number in range(rounds + warm):
            took.append(first_words(api, row, agent, model.url, cwd))
            if warm and number < rounds:
                wait_for_spare(folder / "state" / "keepers")
    return statistics.median(took[int(warm) :]) * 1000


def wait_for_spare(keepers: Path) -> None:
    """Wait until an agent that was started ahead has come to rest."""
    sizes: list[int] = []
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        sizes.append(sum(output.stat().st_size for output in keepers.glob("spare_*/output")))
        if len(sizes) > 15 and sizes[-1] and sizes[-1] == sizes[-15]:
            return
        time.sleep(0.1)


def section(scale: Scale) -> str:
    """The table of all agents that run here."""
    cache = Path(os.environ.get("OSTLER_AGENT_CACHE") or ROOT / ".cache" / "agents").resolve()
    return HEAD.format(rounds=scale.rounds) + "\n".join(_line(adapter, cache, scale.rounds) for adapter in ADAPTERS)


def _line(adapter: Adapter, cache: Path, rounds: int) -> str:
    cold, warm = (measure(adapter, cache, rounds, warm=warm) for warm in (False, True))
    line = f"| {adapter.info.id} | {cold:,.0f} ms | {warm:,.0f} ms | {cold / warm:,.1f}x |"
    print(f"agents       {line}", flush=True)
    return line
