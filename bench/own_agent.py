"""Ostler's own agent: how fast it is ready, cold and warm, what it takes of memory, and how fast a sleeping one wakes.

The model is the scripted one on this machine. `python -m bench.own_agent` prints the section without writing it down.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec

from bench.agents import PATIENCE, wait_for_spare
from bench.scale import FULL, QUICK, Figures, Scale, median, p95
from bench.table import Aim, Row, table_of
from ostler.agents.ostler import OstlerAdapter
from ostler.agents.sources import Builtin
from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Prompted, Start, ToAgent
from tests.support.patience import wait_until
from tests.support.serving import clean_env, running_server

ROWS = (
    Row("cold", "start of the process to its ready line, p95", "ms", Aim("at_most", 300)),
    Row("rss", "memory after a turn, without MCP servers (RSS)", "bytes", Aim("at_most", 60 * 2**20)),
    Row("warm", "prompt to ready, a new session whose agent was started ahead, p50", "ms", Aim("at_most", 20)),
    Row("wake", "prompt to ready, a session whose agent sleeps, p95", "ms", Aim("at_most", 100)),
    Row("up", "prompt to first words, the process is up, p50", "ms"),
    Row("warm.words", "prompt to first words, started ahead, p50", "ms"),
    Row("wake.words", "prompt to first words, asleep, p95", "ms"),
)
_METHOD = """{rounds} round(s) of {tries} tries, medians of the rounds; load average {load:.1f} at the end. The process
alone is started as the server starts it; all else is asked of `ostler serve` over HTTP. The model answers at once, from
this machine."""
_PROMPTS = {"ostler": "SCRIPT: say hello", "mock": "mock: say hello"}
_IDLE_SECONDS = 0.1
_COMMAND = next(source.command for source in OstlerAdapter.sources if isinstance(source, Builtin))


def section(scale: Scale) -> str:
    """All rounds, and the table."""
    tries = 5 if scale is QUICK else 8
    ours: dict[str, list[float]] = {}
    mock: dict[str, list[float]] = {}
    for _ in range(scale.rounds):
        with ScriptedModel() as model:
            rounds = (
                (ours, _alone(model, tries) | _served("ostler", model, tries)),
                (mock, _served("mock", model, tries)),
            )
        for samples, figures in rounds:
            print(f"own agent    {figures}", flush=True)
            for key, value in figures.items():
                samples.setdefault(key, []).append(value)
    table = table_of(ROWS, ours, mock, ("own agent", "mock"))
    return f"{_METHOD.format(rounds=scale.rounds, tries=tries, load=os.getloadavg()[0])}\n\n{table}\n"


# The process alone


def _alone(model: ScriptedModel, tries: int) -> Figures:
    """From the start of the process to its ready line, and its memory when it has done something."""
    seconds: list[float] = []
    resident: list[float] = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with _process(Path(folder), model) as process:
                _until(process, b'"type":"ready"')
                seconds.append(time.perf_counter() - began)
                _say(process, Prompted(text="SCRIPT: bash echo hello\nSCRIPT: say Done."))
                _until(process, b'"type":"done"')
                resident.append(_resident(process.pid))
    return {"cold": p95(seconds) * 1e3, "rss": max(resident)}


@contextmanager
def _process(folder: Path, model: ScriptedModel) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        _COMMAND,
        cwd=folder,
        env=clean_env(folder / "home", {"OSTLER_PROVIDER_KEY": "sk-test"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    place = {"api": "chat", "base_url": f"{model.url}/v1", "model": "scripted-large"}
    _say(process, Start(version="0", permission_mode="bypass", **place))  # type: ignore[arg-type]  # all of it is text
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _say(process: subprocess.Popen[bytes], frame: ToAgent) -> None:
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(frame) + b"\n")
    process.stdin.flush()


def _until(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if word in line:
            return
    raise ValueError(f"the agent ended before it said {word.decode()}")


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


# In a server


def _served(agent: str, model: ScriptedModel, tries: int) -> Figures:
    """First words of an agent that is up, of one that was started ahead, and of one that is woken."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder), "--warm-agents", "1") as api:
        _turn(api, agent, _made(api, agent, model, folder))  # from now on such an agent is started ahead
        warm, up = [], []
        for _ in range(tries):
            wait_for_spare(Path(folder) / "state" / "keepers")
            session = _made(api, agent, model, folder)
            warm.append(_turn(api, agent, session))
            up += [_turn(api, agent, session) for _ in range(2)]
            api.post(f"/sessions/{session}/stop").raise_for_status()
    with (
        tempfile.TemporaryDirectory() as folder,
        _server(Path(folder), OSTLER_IDLE_TIMEOUT_SECONDS=str(_IDLE_SECONDS)) as api,
    ):
        session = _made(api, agent, model, folder)
        woken = [_turn(api, agent, _asleep(api, session)) for _ in range(tries + 1)][1:]
    return {
        "warm": median(ready for ready, _ in warm) * 1e3,
        "wake": p95([ready for ready, _ in woken]) * 1e3,
        "up": median(words for _, words in up) * 1e3,
        "warm.words": median(words for _, words in warm) * 1e3,
        "wake.words": p95([words for _, words in woken]) * 1e3,
    }


@contextmanager
def _server(folder: Path, *args: str, **env: str) -> Iterator[httpx.Client]:
    (folder / "state").mkdir()
    with (
        running_server(folder / "state", "--repository-folder", str(folder), *args, env=env) as running,
        httpx.Client(base_url=f"{running.url}/api/v1", timeout=PATIENCE) as api,
    ):
        yield api


def _made(api: httpx.Client, agent: str, model: ScriptedModel, folder: str) -> str:
    body: dict[str, object] = {"agent": agent, "cwd": folder, "permissionMode": "bypass"}
    if agent == "ostler":
        body["model"] = "scripted-large"
        body["provider"] = {"type": "openai", "baseUrl": model.url, "apiKey": "sk-test"}
    return str(api.post("/sessions", json=body).raise_for_status().json()["id"])


def _asleep(api: httpx.Client, session: str) -> str:
    wait_until(lambda: "process" not in api.get(f"/sessions/{session}").json(), "its agent sleeps")
    return session


def _turn(api: httpx.Client, agent: str, session: str) -> tuple[float, float]:
    """Seconds from a prompt until the session has a process that takes it, and to the first delta."""
    last = api.get(f"/sessions/{session}").raise_for_status().json()["lastSequence"]
    words = 0.0
    with api.stream("GET", f"/sessions/{session}/events/sse", params={"offset": last}) as events:
        began = time.perf_counter()
        api.post(f"/sessions/{session}/messages", json={"message": _PROMPTS[agent]}).raise_for_status()
        while _waits_for_process(api.get(f"/sessions/{session}").json()):
            pass
        ready = time.perf_counter() - began
        for line in events.iter_lines():
            if not words and '"type":"item.delta"' in line:
                words = time.perf_counter() - began
            if '"type":"turn.ended"' in line:
                return ready, words
    raise ValueError("the stream ended before the turn did")


def _waits_for_process(session: dict[str, object]) -> bool:
    return "process" not in session and session["activity"] != "idle"


if __name__ == "__main__":
    print(section(QUICK if "--quick" in sys.argv else FULL))
