"""Cold and warm start of each real agent: from the first prompt of a new session to the agent's first words.

Run it with `python -m bench.agents [AGENT ...]`; agents are installed into the cache that the tests use. The model is
the scripted one on this machine, so the figures are the agents' and Ostler's own.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.conformance.rows import row_of
from ostler.conformance.stage import Row
from tests.serving import running_server

ROOT = Path(__file__).parents[1]
DEFAULT = ("mock", "claude-code", "codex", "opencode", "pi", "amp", "copilot", "gemini", "qwen")
ROUNDS = 3
PATIENCE = 120.0
HEAD = """
## Cold and warm start of agents

From the first prompt of a new session to the agent's first words, median of {rounds}; the model answers at once, from
this machine. Warm: the setting `warm_agents` is on, and a session like this one was started before.

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
    body: dict[str, Any] = {"agent": agent, "cwd": str(cwd), "env": row.variables(url), "permission_mode": "bypass"}
    if row.provider:
        body["provider"] = {"type": row.provider, "base_url": url, "api_key": "sk-test"}
    if row.model:
        body["model"] = row.model
    session = api.post("/sessions", json=body).raise_for_status().json()["id"]
    began = time.perf_counter()
    api.post(f"/sessions/{session}/messages", json={"message": "Say hello."}).raise_for_status()
    with api.stream("GET", f"/sessions/{session}/events/sse") as events:
        for line in events.iter_lines():
            if '"type":"item.delta"' in line:
                took = time.perf_counter() - began
            if '"type":"turn.ended"' in line:
                break
    api.post(f"/sessions/{session}/stop")
    return took


def measure(adapter: Adapter, cache: Path, *, warm: bool) -> float:
    """The median of some starts, in milliseconds."""
    row, agent = row_of(adapter), adapter.info.id
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cwd = folder / "work"
        cwd.mkdir()
        model = stack.enter_context(row.service())
        api = stack.enter_context(server(folder, cache, "--warm-agents", "1" if warm else "0"))
        api.post(f"/agents/{agent}/install", timeout=900).raise_for_status()
        took = []
        for number in range(ROUNDS + warm):
            took.append(first_words(api, row, agent, model.url, cwd))
            if warm and number < ROUNDS:
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


def table(names: Sequence[str], cache: Path) -> Iterator[str]:
    """The rows, one by one as they are measured."""
    adapters = {adapter.info.id: adapter for adapter in ADAPTERS}
    for name in names:
        cold, warm = (measure(adapters[name], cache, warm=warm) for warm in (False, True))
        yield f"| {name} | {cold:,.0f} ms | {warm:,.0f} ms | {cold / warm:,.1f} |"


def main() -> None:
    """Print the table."""
    cache = Path(os.environ.get("OSTLER_AGENT_CACHE") or ROOT / ".cache" / "agents").resolve()
    print(HEAD.format(rounds=ROUNDS), end="")
    for line in table(sys.argv[1:] or DEFAULT, cache):
        print(line, flush=True)


if __name__ == "__main__":
    main()
