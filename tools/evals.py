"""Small coding tasks for Ostler's own agent, with any provider: what it solves, with how many tokens, in which time.

    make eval ARGS="--model anthropic/claude-sonnet-4-6"    with the key in the environment; costs money
    make eval                                               plays fixed transcripts: that tests this program alone

A task is a file in `evals/`: a prompt, the files of a folder, and a check that the agent never sees.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ostler.conformance.model import ScriptedModel

FOLDER = Path(__file__).parents[1] / "evals"
_AGENT_SECONDS = 1800
_CHECK_SECONDS = 120


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How it is seen whether a task is solved."""

    command: str
    files: dict[str, str] = {}
    """Put into the folder when the agent is done, in the place of what it made of them."""
    answer: str = ""
    """A pattern that its last words must fit."""


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task."""

    prompt: str
    files: dict[str, str]
    check: Check
    transcript: tuple[str, ...]
    """Lines for the scripted model, one for each of its calls."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one attempt."""

    task: str
    solved: bool
    why: str
    calls: int
    input: int
    cached: int
    output: int
    seconds: float


def attempt(name: str, task: Task, model: str | None) -> Outcome:
    """Let the agent do a task once; without a model the scripted one plays its transcript."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ostler-eval-")))
        player = stack.enter_context(ScriptedModel()) if model is None else None
        folder = place / "folder"
        _write(folder, task.files)
        started = time.monotonic()
        done = _agent(place, folder, _prompt(task, player), model, player)
        seconds = time.monotonic() - started
        asked = len(player.requests) if player is not None else len(task.transcript)
        why = _why_not(task, folder, done, asked)
        calls, used = _used(place / "said.jsonl")
        return Outcome(
            task=name,
            solved=not why,
            why=why,
            calls=calls,
            input=used.get("input", 0),
            cached=used.get("cached", 0),
            output=used.get("output", 0),
            seconds=round(seconds, 1),
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.removeprefix("\n"))


def _prompt(task: Task, player: ScriptedModel | None) -> str:
    script = "" if player is None else "".join(f"\nSCRIPT: {line}" for line in task.transcript)
    return f"{task.prompt}{script}"


def _agent(
    place: Path, folder: Path, prompt: str, model: str | None, player: ScriptedModel | None
) -> "subprocess.CompletedProcess[str]":
    given = {} if player is None else {"OPENROUTER_API_KEY": "sk-eval", "OPENROUTER_BASE_URL": f"{player.url}/v1"}
    (place / "home").mkdir()
    return subprocess.run(
        [
            *(sys.executable, "-m", "ostler", "agent", "--task-file", "-", "--cwd", str(folder)),
            *("--model", model or "openrouter/scripted", "--output", str(place / "said.jsonl")),
        ],
        env={**os.environ, **given, "HOME": str(place / "home")},
        input=prompt,
        capture_output=True,
        text=True,
        timeout=_AGENT_SECONDS,
        check=False,
    )


def _why_not(task: Task, folder: Path, done: "subprocess.CompletedProcess[str]", asked: int) -> str:
    """Why a task is not solved; empty if it is."""
    if done.returncode:
        return f"the agent failed: {done.stderr.strip().splitlines()[-1:]}"
    if asked != len(task.transcript):
        return f"the agent left the transcript: {asked} calls of the model instead of {len(task.transcript)}"
    if not re.search(task.check.answer, done.stdout):
        return f"its answer does not fit {task.check.answer!r}"
    _write(folder, task.check.files)
    checked = subprocess.run(
        ["sh", "-c", task.check.command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_CHECK_SECONDS,
        check=False,
    )
    return "" if checked.returncode == 0 else f"the check failed: {(checked.stderr or checked.stdout)[-300:].strip()}"


def _used(said: Path) -> tuple[int, dict[str, int]]:
    """How often the model answered, and the tokens of all answers."""
    frames = [msgspec.json.decode(line) for line in said.read_bytes().splitlines()] if said.exists() else []
    counted = [frame for frame in frames if frame["type"] == "usage"]
    return len(counted), counted[-1] if counted else {}


def _shown(outcomes: Sequence[Outcome]) -> str:
    rows: list[tuple[str, ...]] = [("task", "solved", "calls", "input", "cached", "output", "seconds", "")]
    rows += [
        (
            each.task,
            "yes" if each.solved else "no",
            *(str(number) for number in (each.calls, each.input, each.cached, each.output, each.seconds)),
            each.why,
        )
        for each in outcomes
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in rows]
    solved = sum(each.solved for each in outcomes)
    return "\n".join([*lines, f"{solved} of {len(outcomes)} solved, {sum(each.seconds for each in outcomes):.0f} s"])


def main(argv: Sequence[str]) -> int:
    """Run the tasks; 1 if one is not solved."""
    known = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
    parser = argparse.ArgumentParser(prog="make eval", description="Small coding tasks for Ostler's own agent.")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"some of {', '.join(known)}; all by default")
    parser.add_argument("--model", help="PROVIDER/MODEL; without it fixed transcripts are played")
    parser.add_argument("--attempts", type=int, default=1, help="how often each task is tried")
    parser.add_argument("--output", type=Path, help="a file for the outcomes as JSON")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.tasks) - set(known)):
        parser.error(f"there is no task {', '.join(unknown)}; there are {', '.join(known)}")
    if given.model is None:
        print("Playing transcripts: this tests the harness, and says nothing about a model.", file=sys.stderr)
    outcomes = []
    for name in given.tasks or known:
        task = msgspec.toml.decode(known[name].read_bytes(), type=Task)
        outcomes += [attempt(name, task, given.model) for _ in range(given.attempts)]
    print(_shown(outcomes))
    if given.output is not None:
        given.output.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes), indent=2) + b"\n")
    return 0 if all(each.solved for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
