"""The container engine of a runner, docker or podman: found by asking, called with an environment of its own.

Nothing that an agent or a repository can write is the engine's configuration: its home is a folder of ours, and
variables of containers reach it in a file.
"""

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ostler.base.errors import RuntimeRefused, Unprocessable
from ostler.runner.processes.helpers import marked, tame
from ostler.runner.runtimes.home import base_environment

ANSWER_SECONDS = 10.0
WORK_SECONDS = 3600.0
_ENGINES = ("docker", "podman")
_ENGINE_VARIABLES = ("DOCKER_HOST", "CONTAINER_HOST")
_LOOK_AGAIN_SECONDS = 30.0
_NO_ANSWER = 124
_CHUNK = 65536
_MOST_OUTPUT = 65536
_LAST_WORDS = 400
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MOST_IN_A_LINE = 60_000
"""Engines read lines of a file up to 64 KiB."""
_LOCAL_IMAGES = ("dir", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sif", "tarball")
_POLICY = Path("/etc/containers/policy.json")


class Engine(NamedTuple):
    """An engine that answers."""

    path: str
    is_podman: bool

    @property
    def name(self) -> str:
        """How its program is called."""
        return Path(self.path).name


class Variables(NamedTuple):
    """How a container gets its variables: flags of its start, and what these need of the engine's environment."""

    flags: tuple[str, ...]
    env: dict[str, str]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Podman's policy.json: which images are accepted."""

    default: list[Any]
    transports: dict[str, Any] = msgspec.field(default_factory=dict)


class Engines:
    """Finds the engine and runs its commands; everything it needs on disk is in `folder`."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        *,
        answer_seconds: float = ANSWER_SECONDS,
        look_again_seconds: float = _LOOK_AGAIN_SECONDS,
    ) -> None:
        self._folder = folder
        self._environ = environ
        self._answer_seconds = answer_seconds
        self._look_again_seconds = look_again_seconds
        self._found: tuple[float, Engine | None] = (0.0, None)

    async def find(self) -> Engine | None:
        """The first engine that answers."""
        looked, found = self._found
        if looked == 0.0 or time.monotonic() - looked > self._look_again_seconds:
            found = await self._look(found)
            self._found = time.monotonic(), found
        return found

    async def get(self) -> Engine:
        """The engine; raises where there is none."""
        found = await self.find()
        if found is None:
            raise RuntimeRefused(
                runtime="devcontainer",
                reason="neither docker nor podman answers on this runner. Start one, or use the runtime local.",
            )
        return found

    async def _look(self, before: Engine | None) -> Engine | None:
        """An engine that answered before and has no time now is busy, not away."""
        for name in _ENGINES:
            path = shutil.which(name, path=self._environ.get("PATH"))
            if path is not None:
                code, output = await self.run((path, "info"), self._answer_seconds)
                if code == _NO_ANSWER and before is not None and before.path == path:
                    return before
                if code == 0:
                    return Engine(path, "buildahVersion" in output)  # a program called docker may be podman
        return None

    @property
    def env(self) -> dict[str, str]:
        """The engine's own variables."""
        given = {name: self._environ[name] for name in _ENGINE_VARIABLES if name in self._environ}
        return {**base_environment(self._environ), **given, "HOME": str(self._folder)}

    async def must(self, command: tuple[str, ...], problem: str) -> None:
        """Run a command that may take long; raises with what it said."""
        code, output = await self.run(command, WORK_SECONDS)
        if code != 0:
            raise RuntimeRefused(runtime="devcontainer", reason=f"{problem}: {output[-_LAST_WORDS:] or f'code {code}'}")

    async def run(self, command: tuple[str, ...], seconds: float, *, stdin: bytes | None = None) -> tuple[int, str]:
        """The exit code of a command and the last it said; it never outlives this call."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env=marked(self.env),
            cwd=self._made_folder(),
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        tame(process.pid, cpu_seconds=seconds)
        output = b""
        try:
            async with asyncio.timeout(seconds):
                await _feed(process, stdin)
                while process.stdout is not None and (chunk := await process.stdout.read(_CHUNK)):
                    output = (output + chunk)[-_MOST_OUTPUT:]
                await process.wait()
        except TimeoutError:
            return _NO_ANSWER, _no_answer(command, seconds)
        finally:
            await _end(process)
        return process.returncode or 0, output.decode(errors="replace").strip()

    async def launch(self, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        """The same for a command that starts something which outlives it, and this process.

        So it has no limits of a helper, and what it said is in a file: whatever it starts may hold on to a pipe.
        """
        with tempfile.TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=self.env,
                cwd=self._made_folder(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                async with asyncio.timeout(seconds):
                    await process.wait()
            except TimeoutError:
                return _NO_ANSWER, _no_answer(command, seconds)
            finally:
                await _end(process)
            output.seek(0)
            return process.returncode or 0, output.read(_MOST_OUTPUT).decode(errors="replace").strip()

    def _made_folder(self) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    # What its commands are made of

    def policy(self, engine: Engine) -> tuple[str, ...]:
        """Flags that keep podman from taking files of the host for images; its other rules stay the machine's."""
        if not engine.is_podman:
            return ()
        rules = _rules()
        transports = {**rules.transports, **{name: {"": [{"type": "reject"}]} for name in _LOCAL_IMAGES}}
        file = self._folder / "policy.json"
        file.write_bytes(msgspec.json.encode(Rules(default=rules.default, transports=transports)))
        return ("--signature-policy", str(file))

    def variables(self, name: str, values: Mapping[str, str]) -> Variables:
        """Hand variables to a container of that name.

        Their values never stand in a command. Only those that no file can hold are in the engine's own environment,
        where they could mean something to it.
        """
        for each in values:
            if not _NAME.fullmatch(each):
                raise Unprocessable(
                    reason=f"A container cannot have the variable {each[:80]!r}. Use letters, digits and _ in its name."
                )
        lines = {each: value for each, value in values.items() if _fits_a_line(each, value)}
        others = {each: value for each, value in values.items() if each not in lines}
        file = self._folder / f"{name}.env"
        _write_private(file, "".join(f"{each}={value}\n" for each, value in sorted(lines.items())))
        flags = ("--env-file", str(file), *(word for each in sorted(others) for word in ("--env", each)))
        return Variables(flags, others)

    def forget(self, name: str) -> None:
        """The container of that name goes."""
        (self._folder / f"{name}.env").unlink(missing_ok=True)


def bind(source: Path | str, target: Path | str, *, read_only: bool = False) -> tuple[str, ...]:
    """Flags that mount a folder of the host."""
    for path in map(str, (source, target)):
        if not path.startswith("/") or any(sign in path for sign in ',:"\n\r\0\\'):
            raise RuntimeRefused(
                runtime="devcontainer",
                reason=f"the folder {path[:200]!r} cannot be mounted. Use one without commas, colons and quotes.",
            )
    fields = f"type=bind,source={source},target={target}"
    return ("--mount", f"{fields},readonly" if read_only else fields)


def _no_answer(command: tuple[str, ...], seconds: float) -> str:
    return f"{Path(command[0]).name} did not answer within {seconds:g} seconds"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _feed(process: asyncio.subprocess.Process, stdin: bytes | None) -> None:
    if process.stdin is not None and stdin is not None:
        with suppress(ConnectionError):  # its exit code and last words tell more
            process.stdin.write(stdin)
            await process.stdin.drain()
        process.stdin.close()


def _fits_a_line(name: str, value: str) -> bool:
    return not any(sign in value for sign in "\n\r\0") and len(f"{name}={value}".encode()) < _MOST_IN_A_LINE


def _write_private(file: Path, content: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(content)


def _rules() -> Rules:
    """The machine's rules about images; without any everything is accepted."""
    try:
        return msgspec.json.decode(_POLICY.read_bytes(), type=Rules)
    except (OSError, msgspec.DecodeError):
        return Rules(default=[{"type": "insecureAcceptAnything"}])
