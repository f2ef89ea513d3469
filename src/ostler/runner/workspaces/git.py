"""The git binary, called so that nothing a repository or a client says can make it run a program.

It only ever works in repositories that Ostler made itself; what an agent changed reaches git as copies of plain files
(see recorder.py). Configuration of the machine, of users and of templates is not read, hooks and helpers are off, and
a remote is spoken to by the protocols of its policy only.
"""

import re
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread, Timer
from typing import IO, Concatenate, ParamSpec

import msgspec

from ostler.base.undo import undone_by
from ostler.runner.file_trees.stopping import Stop, check_wanted, current_stop, kill_group
from ostler.runner.processes.helpers import marked, tame

P = ParamSpec("P")
Progress = Callable[[str], None]
LOCAL_SECONDS = 600.0
REMOTE_SECONDS = 3600.0
_OFF = {
    "core.hooksPath": "/dev/null",
    "core.fsyncMethod": "batch",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.pager": "cat",
    "core.quotePath": "false",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "checkout.workers": "0",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1",
    "http.lowSpeedTime": "120",
    "init.defaultBranch": "main",
    "advice.detachedHead": "false",
    "safe.directory": "*",
}
_SETTINGS = tuple(word for name, value in _OFF.items() for word in ("-c", f"{name}={value}"))
_PASSED_ON = frozenset({"PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"})
_LAST_LINES = 12
_LONGEST_LINE = 2000
_USERINFO = re.compile(r"(?<=://)[^/\s@']+@")
_PERCENT = re.compile(r"(.+?):\s{1,9}(\d{1,3})%")


class GitFailed(Exception):
    """A git command did not work; the text is what git said, without secrets."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """How a remote may be reached: protocols, variables that carry a credential, and what must never be shown."""

    protocols: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    def hidden(self, text: str) -> str:
        """The text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return _USERINFO.sub("***@", text)


OFFLINE = Remote()


def _whole(
    start: Callable[Concatenate["Git", P], AbstractContextManager[IO[bytes]]],
) -> Callable[Concatenate["Git", P], bytes]:
    def run(git: "Git", /, *arguments: P.args, **how: P.kwargs) -> bytes:
        """All that the command prints."""
        with start(git, *arguments, **how) as output:
            return output.read()

    return run


class Git:
    """Runs git; `environ` gives the PATH, proxies and trusted certificates, `home` is an empty folder."""

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        passed_on = {
            name: value for name, value in environ.items() if name in _PASSED_ON or name.lower().endswith("_proxy")
        }
        self._env = {
            **passed_on,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GIT_EDITOR": "false",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TEMPLATE_DIR": "",
        }

    @contextmanager
    def started(
        self,
        *arguments: str,
        repository: Path | None = None,
        files: Path | None = None,
        index: Path | None = None,
        given: bytes = b"",
        remote: Remote = OFFLINE,
        env: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        stop: Stop | None = None,
        accept: Sequence[int] = (0,),
        file_bytes: int | None = None,
        seconds: float | None = None,
    ) -> Iterator[IO[bytes]]:
        """The command's output as it comes; raises GitFailed at the end of the block.

        `repository` is a git folder of ours, `files` the folder its index speaks about. With `file_bytes` it is ended
        when it writes a larger file.
        """
        command = ["git", *_SETTINGS, *_paths(repository, files), *arguments]
        variables = {**self._env, "GIT_ALLOW_PROTOCOL": ":".join(remote.protocols), **remote.env, **(env or {})}
        if index is not None:
            variables["GIT_INDEX_FILE"] = str(index)
        with _input(given) as stdin:
            child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=marked(variables),
                cwd=files or variables["HOME"],
                start_new_session=True,
            )
        seconds = seconds or (REMOTE_SECONDS if progress else LOCAL_SECONDS)
        tame(child.pid, cpu_seconds=seconds, file_bytes=file_bytes)
        with child, (stop or current_stop()).watching(child), _deadline(child, seconds) as is_late:
            listener = _Listener(_pipe(child.stderr), progress)
            try:
                with undone_by(lambda: kill_group(child)):
                    yield _pipe(child.stdout)
            finally:
                words = listener.finish()
            if child.wait() not in accept:
                check_wanted()
                if is_late.is_set():
                    raise GitFailed(f"git {arguments[0]} was not done after {seconds:.0f} seconds")
                raise GitFailed(remote.hidden(words) or f"git {arguments[0]} ended with code {child.returncode}")

    run = _whole(started)


def _paths(repository: Path | None, files: Path | None) -> list[str]:
    paths = [f"--git-dir={repository}"] if repository else []
    return [*paths, f"--work-tree={files}"] if files else paths


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("the command was started without this pipe")
    return stream


@contextmanager
def _input(given: bytes) -> Iterator[IO[bytes] | int]:
    """A file, not a pipe: git may be slow to read, and we want to read what it prints meanwhile."""
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


@contextmanager
def _deadline(child: subprocess.Popen[bytes], seconds: float) -> Iterator[Event]:
    """End the command after a time; the event says that this was done."""
    is_late = Event()

    def end() -> None:
        is_late.set()
        kill_group(child)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


class _Listener:
    """Reads what git says beside its output: progress is passed on, the last lines are kept for an error."""

    def __init__(self, stream: IO[bytes], progress: Progress | None) -> None:
        self._stream = stream
        self._progress = progress
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._reported = ""
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def finish(self) -> str:
        """What was said last."""
        self._thread.join(timeout=10)
        return " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in self._last)

    def _read(self) -> None:
        pending = b""
        while chunk := self._stream.read1(65536):  # type: ignore[attr-defined]  # pipes of Popen are buffered
            *lines, pending = re.split(rb"[\r\n]", pending[-_LONGEST_LINE:] + chunk)
            pending = pending[:_LONGEST_LINE]
            for line in lines:
                self._take(line[:_LONGEST_LINE].decode(errors="replace").strip())
        self._take(pending.decode(errors="replace").strip())

    def _take(self, line: str) -> None:
        found = _PERCENT.match(line)
        if found is None:
            if line and not line.startswith("remote: "):
                self._last.append(line)
            return
        line = f"{found[1].removeprefix('remote: ')}: {found[2]}%"
        if self._progress is not None and line != self._reported:
            self._reported = line
            self._progress(line)
