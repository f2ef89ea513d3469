"""Agents in containers: one container for each start of an agent, made as the repository's devcontainer.json says.

The workspace is mounted where the file says, which is the agent's folder, and at the path it has on the host; the
agent's home and programs are mounted too. Values of variables never stand in a command.
"""

import asyncio
import functools
import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.base.errors import FileMissing, RuntimeRefused, SetupFailed, Unprocessable
from ostler.link.workspaces import Progress
from ostler.runner.processes.process import Command
from ostler.runner.runtimes import devcontainer_file as described
from ostler.runner.runtimes.container_engines import ANSWER_SECONDS, WORK_SECONDS, Engine, Engines, bind
from ostler.runner.runtimes.devcontainer_file import USUAL_PATHS, Build, DevcontainerFile, expanded
from ostler.runner.runtimes.runtime import Start, T, Way
from ostler.runner.workspaces.files import Files, checked_path
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.records import read_record, write_record
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import Devcontainer, Runtime, RuntimeType, Workspace

_REMOVE_SECONDS = 60.0
"""Podman gives processes ten seconds to end by themselves."""
_NO_ENGINE = "Neither docker nor podman answers on the runner."
_LABEL = "ostler.workspace"
_LAST_WORDS = 400
_INTERPRETERS = ("python", "node", "bun", "deno")
_ANY_PYTHON = """command -v python3 >/dev/null 2>&1 && exec python3 "$@"
why=$("$0" -I -c "import ssl" 2>&1) && exec "$0" "$@"
echo "This container has no python3, and the Python of the server does not run in it: $why. Use an image with python3,\
 or one with glibc for the server's kind of processor, such as Debian's." >&2
exit 127"""
_MOST_DOCKERFILE_BYTES = 2**18
_JOINED_LINES = re.compile(r"[\\`][ \t]*\r?\n")


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to start the container of a workspace."""

    shown: Devcontainer
    env: dict[str, str]
    user: str | None = None
    cpu: float | None = None
    memory_mib: int | None = None


class DevcontainerRuntime:
    """Implements Runtime; what a workspace needs to start is one file for each of them."""

    types: tuple[RuntimeType, ...] = ("devcontainer",)
    needs_visible = True
    applies_limits = True

    def __init__(
        self, library: WorkspaceLibrary, folder: Path, *, environ: Mapping[str, str], programs: Sequence[Path]
    ) -> None:
        """`programs` are agents, and what they import, that containers may read."""
        self._library = library
        self._folder = folder
        self._programs = programs
        self._engines = Engines(folder, environ)

    async def describe(self, kind: RuntimeType) -> RuntimeInfo:
        """Where it looks for its file, and whether an engine answers."""
        there = await self._engines.find() is not None
        return RuntimeInfo(
            type=kind, available=there, images=(), paths=USUAL_PATHS, why_not=None if there else _NO_ENGINE
        )

    async def check(self) -> None:
        """Raise unless containers can be had here."""
        await self._engines.get()

    async def prepare(self, workspace: Workspace, wanted: Runtime, progress: Progress) -> None:
        """Read the file of a new workspace, and get or build its image."""
        path, file = await self._read(workspace, wanted.devcontainer_path)
        engine = await self._engines.get()
        inside = expanded(file.workspace_folder or f"/workspaces/{workspace.id}", workspace.path, "")
        self._check_folder(inside, path)
        env = {name: expanded(value, workspace.path, inside) for name, value in file.env.items()}
        for value in env.values():
            described.check_value(value, path)
        image = await self._image(engine, workspace, path, file, progress)
        limits = wanted.resources
        made = Container(
            shown=Devcontainer(
                config_path=path,
                image=image,
                engine=engine.name,
                workspace_folder=inside,
                container=_name(workspace.id),
            ),
            env=env,
            user=file.user,
            cpu=limits.cpu if limits is not None else None,
            memory_mib=limits.memory_mib if limits is not None else None,
        )
        # first of all: what is begun from now on is found and removed, even after a kill
        write_record(self._file(workspace.id), made)
        await self._after_creation(engine, workspace, made, file, progress)
        await self._library.begin(workspace.id)

    def _check_folder(self, inside: str, path: str) -> None:
        """Raise for a folder of the container that is none, or hides what else is mounted."""
        described.check_folder(inside, path)
        taken = [self._folder.parent, *self._programs]
        if any(Path(inside).is_relative_to(each) or each.is_relative_to(inside) for each in taken):
            raise Unprocessable(
                reason=f"{path}: workspaceFolder: '{inside[:80]}' is in the way of other folders. Give another one."
            )

    async def _read(self, workspace: Workspace, wanted: str | None) -> tuple[str, DevcontainerFile]:
        for path in (checked_path(wanted),) if wanted is not None else USUAL_PATHS:
            with suppress(FileMissing):
                read = functools.partial(_parsed, path=path)
                return path, await self._library.files.use(workspace.id, read)
        paths = wanted or " or ".join(USUAL_PATHS)
        raise Unprocessable(reason=f"The repository has no {paths}. Add one, or use the runtime local.")

    async def _image(
        self, engine: Engine, workspace: Workspace, path: str, file: DevcontainerFile, progress: Progress
    ) -> str:
        if file.build is not None:
            return await self._built(engine, workspace, path, file.build, progress)
        image = file.image or ""
        if (await self._engines.run((engine.path, "image", "inspect", image), ANSWER_SECONDS))[0] != 0:
            progress(f"Pulling {image}")
            command = (engine.path, "pull", "--quiet", *self._engines.policy(engine), image)
            await self._engines.must(command, f"The image {image} could not be pulled")
        return image

    async def _built(self, engine: Engine, workspace: Workspace, path: str, build: Build, progress: Progress) -> str:
        near = posixpath.dirname(path)
        read = functools.partial(_dockerfile, path=_near(near, build.dockerfile), engine=engine)
        dockerfile = self._folder / f"{workspace.id}.Dockerfile"  # our own copy: podman runs a program for some names
        dockerfile.write_bytes(await self._library.files.use(workspace.id, read))
        context = _context(workspace, path, _near(near, build.context))
        name = f"ostler-{hashlib.sha256(f'{workspace.url}{workspace.commit}{path}'.encode()).hexdigest()[:16]}"
        flags = [word for key, value in build.args.items() for word in ("--build-arg", f"{key}={value}")]
        flags += ["--target", build.target] if build.target else []
        flags += self._engines.policy(engine)
        progress(f"Building {name} from {build.dockerfile}")
        command = (engine.path, "build", "--quiet", "-t", name, "-f", str(dockerfile), *flags, str(context))
        try:
            await self._engines.must(command, f"The image of {path} could not be built")
        finally:
            dockerfile.unlink()
        return name

    async def _after_creation(
        self, engine: Engine, workspace: Workspace, made: Container, file: DevcontainerFile, progress: Progress
    ) -> None:
        for words in described.commands(file.post_create_command, made.shown.config_path):
            progress(f"Running postCreateCommand: {' '.join(words)[:200]}")
            start = (engine.path, "run", "--rm", "--init", "--name", made.shown.container)
            mounts = _mounts(workspace, made)
            command = (*start, *_flags(workspace.id, made), *mounts, made.shown.image, *words)
            code, output = await self._engines.run(command, WORK_SECONDS)
            if code != 0:
                raise SetupFailed(exit=f"code {code}", output=output[-_LAST_WORDS:] or "none")

    # Using

    def has(self, workspace: str) -> bool:
        """Whether a container was prepared for it."""
        return self._file(workspace).exists()

    def container(self, workspace: str) -> Devcontainer | None:
        """The container as clients see it."""
        return self._get(workspace).shown

    def _get(self, workspace: str) -> Container:
        found = read_record(self._file(workspace), Container)
        if found is None:  # never outside of a container instead
            raise RuntimeRefused(runtime="devcontainer", reason="what its container was made of is lost.")
        return found

    def _file(self, workspace: str) -> Path:
        return self._folder / f"{workspace}.json"

    def copy(self, origin: str, workspace: str) -> None:
        """A fork runs in the same kind of container; a folder that is called after the origin is called after it."""
        made = self._get(origin)
        folder = made.shown.workspace_folder.replace(origin, workspace)
        shown = msgspec.structs.replace(made.shown, container=_name(workspace), workspace_folder=folder)
        env = {name: value.replace(origin, workspace) for name, value in made.env.items()}
        write_record(self._file(workspace), msgspec.structs.replace(made, shown=shown, env=env))

    async def start(self, start: Start, way: Way[T]) -> T:
        """In a fresh container; one that an earlier start left is removed."""
        workspace = self._library.get(start.workspace or "")
        made = self._get(workspace.id)
        engine = await self._engines.get()
        await self._engines.run((engine.path, "rm", "--force", made.shown.container), _REMOVE_SECONDS)
        given = {**made.env, **start.env}
        variables = await asyncio.to_thread(self._engines.variables, workspace.id, given)
        there = [folder for folder in self._programs if folder.exists()]  # engines do not make what is missing
        argv = (
            *(engine.path, "run", "--interactive", "--rm", "--init", "--name", made.shown.container),
            *_flags(workspace.id, made),
            *_mounts(workspace, made),
            *bind(start.home, start.home),
            *(word for folder in there for word in bind(folder, folder, read_only=True)),
            *variables.flags,
            made.shown.image,
            *_inside(start.argv),
        )
        return await way(Command(argv=argv, env={**self._engines.env, **variables.env}, cwd=workspace.path))

    async def remove(self, workspace: str) -> None:
        """The workspace goes, and its container with it."""
        if (engine := await self._engines.find()) is not None:
            await self._engines.run((engine.path, "rm", "--force", _name(workspace)), _REMOVE_SECONDS)
        await asyncio.to_thread(self._file(workspace).unlink, missing_ok=True)
        await asyncio.to_thread(self._engines.forget, workspace)


def _parsed(files: Files, path: str) -> DevcontainerFile:
    return described.parse(files.read(path, length=described.MOST_BYTES + 1).data, path)


def _dockerfile(files: Files, path: str, engine: Engine) -> bytes:
    """A Dockerfile of a stranger; raises for one that could reach beyond its build."""
    data = files.read(path, length=_MOST_DOCKERFILE_BYTES + 1).data
    if len(data) > _MOST_DOCKERFILE_BYTES:
        raise Unprocessable(reason=f"{path} is larger than {_MOST_DOCKERFILE_BYTES} bytes. Make it smaller.")
    text = data.decode(errors="replace")
    without_comments = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    forms = (text, _JOINED_LINES.sub("", text), _JOINED_LINES.sub("", without_comments))
    if engine.is_podman and any("--mount" in form for form in forms):
        # podman before 4.9.4 follows links of such mounts out to the host
        raise Unprocessable(reason=f"{path} uses RUN --mount, which is not supported with podman. Use COPY instead.")
    return data


def _near(folder: str, path: str) -> str:
    """A path that the file gives, seen from the repository's root."""
    plain = posixpath.normpath(posixpath.join(folder, path))
    return "" if plain == "." else checked_path(plain)


def _context(workspace: Workspace, path: str, context: str) -> Path:
    root = Path(workspace.path).resolve()
    found = (root / context).resolve()
    if not found.is_relative_to(root):
        raise Unprocessable(reason=f"{path}: build.context leads out of the repository. Give a folder in it.")
    return found


def _name(workspace: str) -> str:
    return f"ostler-{workspace.lower()}"


def _flags(workspace: str, made: Container) -> tuple[str, ...]:
    described.check_image(made.shown.image, made.shown.config_path)
    flags = ["--label", f"{_LABEL}={workspace}"]
    if made.user:
        described.check_user(made.user, made.shown.config_path)
        flags += ["--user", made.user]
    flags += ["--cpus", f"{made.cpu:g}"] if made.cpu is not None else []
    flags += ["--memory", f"{made.memory_mib}m"] if made.memory_mib is not None else []
    return tuple(flags)


def _mounts(workspace: Workspace, made: Container) -> tuple[str, ...]:
    inside = made.shown.workspace_folder
    described.check_folder(inside, made.shown.config_path)  # an older version may have kept anything
    return (*bind(workspace.path, inside), *bind(workspace.path, workspace.path), "--workdir", inside)


def _inside(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command as the container knows it: an interpreter of the host is replaced by the container's own.

    A container without a Python gets that of the host, if it is mounted there and runs.
    """
    name = Path(argv[0]).name
    own = next((each for each in _INTERPRETERS if name.startswith(each)), None)
    if own == "python":
        return ("sh", "-c", _ANY_PYTHON, str(Path(argv[0]).resolve()), *argv[1:])
    return argv if own is None else (own, *argv[1:])
