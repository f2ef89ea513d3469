"""Runs the tools that install agents: bounded in time, stoppable, and with nothing secret around them."""

import copy
import errno
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Timer

from ostler.runner.processes.helpers import marked

Progress = Callable[[str], None]
_PASSED_ON = re.compile(
    r"(?i)PATH|HOME|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|PYENV_\w+|\w+_PROXY|SSL_CERT_\w+|NODE_EXTRA_CA_CERTS"
    r"|REQUESTS_CA_BUNDLE|NPM_CONFIG_\w+|PIP_\w+|UV_\w+"
)
"""Variables that tools may need to reach a registry; credentials of agents are not among them."""
_TRUSTED = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where machines keep the certificates they trust; npm and uv bring lists of their own, which lack a company's."""
_LAST_BYTES = 8192
_LAST_LINES = 6
_LINE_LENGTH = 300
_POLL_SECONDS = 0.1
_ASK_SECONDS = 30.0
_QUESTIONS = ("--version", "version", "-V")
_EXECUTABLE = 0o755


def _machine_trust() -> dict[str, str]:
    """Let the tools trust whom the machine trusts."""
    bundle = next((path for path in _TRUSTED if Path(path).is_file()), None)
    return {} if bundle is None else {"SSL_CERT_FILE": bundle, "NODE_EXTRA_CA_CERTS": bundle}


class SourceFailed(Exception):
    """One source of an agent did not work: why, in words for people; the next source may."""


class ChecksumWrong(Exception):
    """The file is not the one its vendor published; nothing else is tried then."""


class Stopped(Exception):
    """The installation was called off."""


def the_program(content: Path, pattern: str) -> Path:
    """The program in a folder, by its path or a pattern of it; can be executed afterwards."""
    found = next((path for path in sorted(content.glob(pattern)) if path.is_file()), None)
    if found is None:
        raise SourceFailed(f"there is no {pattern} in what was installed")
    found.chmod(found.stat().st_mode | _EXECUTABLE)
    return found


class Toolbox:
    """What one installation works with: variables, a folder of its own, a deadline, and whom to tell."""

    def __init__(
        self, environ: Mapping[str, str], search: Sequence[str], *, seconds: float, stop: Event, progress: Progress
    ) -> None:
        passed_on = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}
        self.environ = {**_machine_trust(), **passed_on}
        self.search = os.pathsep.join(search)
        self.progress = progress
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._stop = stop
        self._reported_others = False

    def share(self) -> "Toolbox":
        """The same with half of the time that is left, as something else comes after it."""
        part = copy.copy(self)
        part._seconds = max(0.0, (self._deadline - time.monotonic()) / 2)
        part._deadline = time.monotonic() + part._seconds
        return part

    @contextmanager
    def cut_off(self, end: Callable[[], None]) -> Iterator[None]:
        """Do this when the time is over, to what may not look at it: a host that sends a byte now and then."""
        timer = Timer(max(0.0, self._deadline - time.monotonic()), end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def check(self) -> None:
        """Raise if there is no time left, or nobody wants this any more."""
        if self._stop.is_set():
            raise Stopped
        if time.monotonic() > self._deadline:
            raise SourceFailed(f"it took longer than {self._seconds:g} seconds")

    def wait_for_others(self) -> None:
        """Wait a moment while somebody else installs the same."""
        if not self._reported_others:
            self._reported_others = True
            self.progress("waiting for another installation of it")
        self._pause()

    def _pause(self) -> None:
        self.check()
        self._stop.wait(_POLL_SECONDS)

    def run(self, folder: Path, *argv: str, lock: int, **environ: str) -> None:
        """Run a tool in a folder; raises SourceFailed with its last words. It keeps the lock until it has ended."""
        env = {**self.environ, "PATH": self.search, **environ}
        if (failure := self._failure(folder, argv, env, lock, self._seconds)) is not None:
            raise SourceFailed(f"{Path(argv[0]).name} {failure}")

    def see_it_start(self, program: Path, folder: Path, *, lock: int) -> None:
        """Raise SourceFailed if a program cannot tell its version: it is for another machine, or broken.

        It sees a home of its own in the folder, and is not asked again if it is silent.
        """
        home = folder / "home"
        home.mkdir(exist_ok=True)
        env = {"PATH": self.search, "HOME": str(home)}
        failures = []
        for question in _QUESTIONS:
            failure = self._failure(folder, (str(program), question), env, lock, _ASK_SECONDS)
            if failure is None:
                return
            failures.append(f"`{program.name} {question}` {failure}")
        raise SourceFailed(failures[0])

    def _failure(
        self, folder: Path, argv: Sequence[str], env: Mapping[str, str], lock: int, seconds: float
    ) -> str | None:
        """Run to the end; gives how it failed with its last words, or None if it did not."""
        output, latest = folder / "output.log", time.monotonic() + seconds
        process = self._start(argv, folder, output, env, lock)
        try:
            while process.poll() is None:
                self._pause()
                if time.monotonic() > latest:
                    raise SourceFailed(f"{Path(argv[0]).name} did not end within {seconds:g} seconds")
        finally:
            _end(process)
        return f"{_ended(process.returncode)}: {_last_words(output)}" if process.returncode else None

    def _start(
        self, argv: Sequence[str], folder: Path, output: Path, env: Mapping[str, str], lock: int
    ) -> "subprocess.Popen[bytes]":
        while True:
            try:
                with output.open("wb") as log:
                    return subprocess.Popen(
                        argv,
                        cwd=folder,
                        env=marked(env),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        pass_fds=(lock,),
                    )
            except OSError as error:
                if error.errno != errno.ETXTBSY:
                    raise SourceFailed(f"{Path(argv[0]).name} cannot be run ({error.strerror})") from error
                self._pause()  # another thread is starting something and has the new file open until then

    def ask(self, *argv: str) -> str | None:
        """What a tool prints, or None if it fails or takes long. Nothing of it is left behind."""
        environ = {**self.environ, "PATH": self.search}
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    argv,
                    env=marked(environ),
                    cwd=environ.get("HOME") or "/",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                return None
            try:
                code = process.wait(_ASK_SECONDS)
            except subprocess.TimeoutExpired:
                return None
            finally:
                _end(process)
            output.seek(0)
            return None if code else output.read(_LAST_BYTES).decode(errors="replace").strip()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """A tool has nothing to save: what it made is thrown away."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ended(code: int) -> str:
    if code > 0:
        return f"ended with {code}"
    return f"was ended by {signal.Signals(-code).name}"


_OWN_LOG = "complete log of this run"
"""npm names a file that goes with the failed installation."""


def _last_words(output: Path) -> str:
    text = output.read_bytes()[-_LAST_BYTES:].decode(errors="replace")
    lines = [line.strip()[:_LINE_LENGTH] for line in text.splitlines() if line.strip() and _OWN_LOG not in line]
    return " / ".join(lines[-_LAST_LINES:]) or "it said nothing"
