"""How long the corridors are: which files of ours a prompt, an answer to an ask and a task pass in a live server.

`python -m tools.walks` prints, for each walk, its calls, functions, files and moves between files; `--files` names the
files as well. A walk goes from the request to the event that the client waits for. The first time also loads what is
loaded once; of the others the shortest counts, and of its files those that each of them passed, because what the walk
before left to do may happen to run in one, and a reader who is slow for a moment has more done for it.

`files` counts what carries the request. `all` counts two things more that a reader who follows it does not open: the
words that any module is written in (`VOCABULARY`), and loops that the request only wakes (`BESIDE`).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import httpx

ROOT = Path(__file__).resolve().parent.parent
SOURCE = str(ROOT / "src" / "ostler") + os.sep
_SECONDS = 120.0
VOCABULARY = ("base/", "wire/")
"""Errors, clocks, ids and types: they know nothing of what they are used for, and lead nowhere else."""
BESIDE = (
    "server.search.service",  # the index of search follows every log
    "server.tasks.retention",  # removes what is old
    "server.engine.embedded",  # calls webhooks
    "server.sessions.work.snapshot_uploads",  # uploads what a session has after a turn
    "server.webhooks.telling",  # looks what webhooks want to hear
)
"""Loops of their own that a request wakes and does not wait for; what they call is no part of its walk."""
_BESIDE = frozenset(f"{name.replace('.', '/')}.py" for name in BESIDE)
BEGINNING = ("server/sessions/service.py", "Sessions.send")
"""The function that begins a turn."""


class Walk(NamedTuple):
    """What one request passed."""

    calls: int
    functions: int
    files: list[str]
    moves: int
    everything: int
    """How many files there are with the vocabulary and what happened beside."""
    beginning: list[str]
    """The files of sessions that were passed to begin a turn."""


class Profile:
    """Counts calls of our functions in the main thread of a server, between two signals."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._clear()

    def _clear(self) -> None:
        self._calls = 0
        self._functions: set[object] = set()
        self._files: set[str] = set()
        self._beside: set[str] = set()
        self._beginning: set[str] = set()
        self._moves = 0

    def begin(self, *_: object) -> None:
        """Count from here."""
        self._clear()
        sys.setprofile(self._called)

    def end(self, *_: object) -> None:
        """Write down what was counted."""
        sys.setprofile(None)
        files = sorted(name for name in self._files if not name.startswith(VOCABULARY))
        everything = len(self._files | self._beside)
        beginning = sorted(name for name in self._beginning if name.startswith("server/sessions/"))
        partly = self._file.with_suffix(".part")
        partly.write_text(json.dumps([self._calls, len(self._functions), files, self._moves, everything, beginning]))
        partly.rename(self._file)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(SOURCE):
            return
        passed = list(_ours(frame))
        name = passed[0][0]
        if any(file in _BESIDE for file, _ in passed):
            self._beside.add(name)
            return
        self._calls += 1
        self._functions.add(frame.f_code)
        self._files.add(name)
        self._moves += len(passed) == 1 or passed[1][0] != name
        if BEGINNING in passed:
            self._beginning.add(name)


def _ours(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    """The functions of ours that called a function, itself first: the file and the name of each."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(SOURCE):
            yield code.co_filename.removeprefix(SOURCE), code.co_qualname
        frame = frame.f_back


def serve(file: str, *args: str) -> int:
    """The server under the profiler."""
    from ostler.cli import main  # noqa: PLC0415  only the measured process is a server

    profile = Profile(Path(file))
    signal.signal(signal.SIGUSR1, profile.begin)
    signal.signal(signal.SIGUSR2, profile.end)
    sys.argv = ["ostler", "serve", *args]
    return main() or 0


class Measured:
    """A server, and what a request passes in it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "walk.json"
        self._output = folder / "output"
        command = [sys.executable, "-m", "tools.walks", "serve", str(self._file)]
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    *command,
                    "--port",
                    "0",
                    "--state-dir",
                    str(folder / "state"),
                    "--warm-agents",
                    "0",
                    "--repository-folder",
                    str(folder),
                ],
                cwd=ROOT,
                env=env,
                stdout=out,
            )
        address = _wait(self._address)
        self.api = httpx.Client(base_url=f"{address}/api/v1", timeout=_SECONDS)
        self.repository = _repository(folder / "repository")

    def _address(self) -> str:
        return self._output.read_text().partition("is listening on ")[2].partition("\n")[0].rstrip(".")

    def walk(self, request: Callable[[], object]) -> Walk:
        """What a request passes; it returns when the client has what it waits for."""
        self._file.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR1)
        request()
        self._process.send_signal(signal.SIGUSR2)
        return Walk(*json.loads(_wait(lambda: self._file.exists() and self._file.read_text())))

    def close(self) -> None:
        """End the server and its agents."""
        self.api.close()
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_SECONDS)


def _repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text("A repository.\n")
    author = ("-c", "user.name=walks", "-c", "user.email=walks@localhost")
    for command in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "Begin")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def _wait(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + _SECONDS
    while not (found := find()):
        if time.monotonic() > deadline:
            raise SystemExit("walks: the server does not answer")
        time.sleep(0.02)
    return found


def _stream(api: httpx.Client, session: str, wanted: str, offset: int) -> dict[str, Any]:
    """Read the events of a session as a client does, until one of a type comes."""
    headers = {"accept": "text/event-stream"}
    with api.stream("GET", f"/sessions/{session}/events", params={"offset": offset}, headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("data:") and (event := json.loads(line[5:])).get("type") == wanted:
                return dict(event)
    raise SystemExit(f"walks: {wanted} never came")


def measured_walks(server: Measured) -> dict[str, Walk]:
    """The three walks, each the shortest one of four, with the files that all four passed."""
    api = server.api
    session = api.post("/sessions", json={"agent": "mock"}).raise_for_status().json()["id"]
    last, permission = 0, ""

    def prompt() -> None:
        nonlocal last
        api.post(f"/sessions/{session}/messages", json={"message": "mock: say hello"}).raise_for_status()
        last = _stream(api, session, "turn.ended", last)["sequence"]

    def reply() -> None:
        nonlocal last
        path = f"/sessions/{session}/permissions/{permission}/reply"
        api.post(path, json={"reply": "once"}).raise_for_status()
        last = _stream(api, session, "turn.ended", last)["sequence"]

    def ask() -> None:
        nonlocal last, permission
        api.post(f"/sessions/{session}/messages", json={"message": "mock: permission go on"}).raise_for_status()
        asked = _stream(api, session, "permission.requested", last)
        last, permission = asked["sequence"], asked["data"]["permission_id"]

    def task() -> None:
        repo = {"mode": "git", "url": str(server.repository)}
        order = {
            "prompt": "mock: write a.txt hello",
            "agent": {"type": "mock"},
            "repo": repo,
            "delivery": {"mode": "patch"},
        }
        made = api.post("/tasks", json=order).raise_for_status().json()["id"]
        _stream(api, made, "session.ended", 0)

    walks: dict[str, Walk] = {}
    for name, begin in (("prompt", prompt), ("reply", reply), ("task", task)):
        gone = []
        for _ in range(5):  # in a row: what the one before left to do is of the same kind
            if begin is reply:
                ask()
            gone.append(server.walk(begin))
        always = set(gone[1].files).intersection(*(walk.files for walk in gone[2:]))
        shortest = min(gone[1:], key=lambda walk: len(walk.files))
        walks[name] = shortest._replace(files=sorted(always))
    return walks


def main(argv: list[str]) -> int:
    """Print the walks."""
    if argv[:1] == ["serve"]:
        return serve(*argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        server = Measured(Path(folder))
        try:
            walks = measured_walks(server)
        finally:
            server.close()
    for name, walk in walks.items():
        figures = f"{len(walk.files):4} files {walk.everything:4} all {walk.moves:6} moves"
        print(f"{name:8} {walk.calls:6} calls {walk.functions:5} functions {figures}")
        if "--files" in argv:
            print(*(f"    {file}" for file in walk.files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
