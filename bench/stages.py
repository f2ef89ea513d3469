"""Where the time from a prompt to the agent's first event goes: time stamps at every seam, medians over many turns."""

import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from ostler import app
from ostler.base.settings import load_settings
from ostler.client import Client
from ostler.runner.execution.connection import AgentConnection
from ostler.runner.processes.process import Process
from ostler.server.api.edge.gate import Gate
from ostler.server.api.streams.cursor import Cursor
from ostler.server.sessions.log.session_log import SessionLog
from ostler.server.sessions.turns import Turns
from ostler.server.store.sqlite.database import Writer

TURNS, WARM_UP = 300, 50
PORT = 2599
marks: list[tuple[str, float]] = []


def mark(owner: Any, name: str, label: str, *, after: bool = False) -> None:
    """Note the time whenever a function is called, or has returned."""
    original: Callable[..., Any] = getattr(owner, name)

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        if not after:
            marks.append((label, time.perf_counter()))
        result = await original(*args, **kwargs)
        if after:
            marks.append((label, time.perf_counter()))
        return result

    def called(*args: Any, **kwargs: Any) -> Any:
        if not after:
            marks.append((label, time.perf_counter()))
        result = original(*args, **kwargs)
        if after:
            marks.append((label, time.perf_counter()))
        return result

    setattr(owner, name, awaited if asyncio.iscoroutinefunction(original) else called)


def instrument() -> None:
    """The seams, in the order in which a prompt meets them."""
    mark(Gate, "_with_body", "request at the gate")
    mark(Turns, "take", "session has the prompt")
    mark(Writer, "submit", "append queued")
    mark(Writer, "_commit", "commit begins")
    mark(Writer, "_commit", "commit done", after=True)
    mark(SessionLog, "_settled", "event loop knows")
    mark(Cursor, "_read", "bytes for the client", after=True)
    mark(AgentConnection, "prompt", "prompt written to the agent", after=True)
    mark(Process, "_on_report", "agent has answered")


def drive() -> None:
    """Send prompts and read their events, then stop the server."""
    with Client(f"http://127.0.0.1:{PORT}") as ostler:
        session = ostler.sessions.create(agent="mock")
        events = iter(session.events())
        prompts = httpx.Client(base_url=f"http://127.0.0.1:{PORT}/api/v1/sessions/{session.id}")
        for _ in range(TURNS):
            prompts.post("/messages", json={"message": "mock: say x"})
            while next(events).type != "turn.ended":
                pass
    os.kill(os.getpid(), 2)


def report() -> None:
    """Medians of the time since the request, for the first and the second time each seam is passed in a turn."""
    turns: list[list[tuple[str, float]]] = []
    for label, moment in marks:
        if label == "request at the gate":
            turns.append([])
        if turns:
            turns[-1].append((label, moment))
    since: dict[str, list[float]] = defaultdict(list)
    for turn in turns[WARM_UP:]:
        seen: dict[str, int] = defaultdict(int)
        for label, moment in turn:
            seen[label] += 1
            if seen[label] <= 2:
                since[f"{label} ({seen[label]})"].append((moment - turn[0][1]) * 1e3)
    for label, values in sorted(since.items(), key=lambda item: statistics.median(item[1])):
        print(f"{statistics.median(values):7.2f} ms  {label}")


def main() -> int:
    """Run a server and its client in one process."""
    instrument()
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(
            flags={"port": PORT, "state_dir": Path(folder), "log_level": "warning"}, environ=os.environ
        )
        threading.Timer(1.0, drive).start()
        app.serve(settings)
    report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
