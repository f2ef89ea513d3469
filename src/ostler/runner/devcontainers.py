"""Agents in containers: one container for each start of an agent, made as the repository's devcontainer.json says.

The workspace is mounted at the path it has on the host and at the one the file names; the agent's home and programs
are mounted too. Values of variables never stand in a command.
"""

import asyncio
import functools
import hashlib
import posixpath
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.agents.adapter import Launch
from ostler.base.errors import FileMissing, RuntimeRefused, SetupFailed, Unprocessable
from ostler.link.workspaces import Progress
from ostler.runner.devcontainer_file import USUAL_PATHS, DevcontainerFile, expanded, parse
from ostler.runner.home import base_environment, environment
from ostler.runner.workspaces.files import Files, checked_path
from ostler.runner.workspaces.model import Workspace
from ostler.runner.workspaces.records import read_record, write_record
from ostler.runner.workspaces.service import Workspaces
from ostler.wire.running import AgentSpec
from ostler.wire.workspaces import Devcontainer, Runtime

_ENGINES = ("docker", "podman")
_ANSWER_SECONDS = 10.0
_REMOVE_SECONDS = 60.0
"""Podman gives processes ten seconds to end by themselves."""
_BUILD_SECONDS = 3600.0
_LOOK_AGAIN_SECONDS = 30.0
_LABEL = "ostler.workspace"
_LAST_WORDS = 400
_INTERPRETERS = ("python", "node", "bun", "deno")
_ENGINE_VARIABLES = ("DOCKER_HOST", "CONTAINER_HOST")


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to start the container of a workspace."""

    shown: Devcontainer
    env: dict[str, str]
    user: str | None = None
    cpu: float | None = None
    memory_mib: int | None = None


class Devcontainers:
    """The containers of one runner."""

    def __init__(
        self, library: Workspaces, folder: Path, *, environ: Mapping[str, str], programs: Sequence[Path]
    ) -> None:
        """`programs` are folders with agents that containers may read."""
        self._library = library
        self._folder = folder
        self._environ = environ
        self._programs = programs
        self._engine: tuple[float, str | None] = (0.0, None)

    async def engine(self) -> str | None:
        """The first engine that answers, as the path of its program."""
        looked, found = self._engine
        if looked == 0.0 or time.monotonic() - looked > _LOOK_AGAIN_SECONDS:
            found = await self._find_engine()
            self._engine = time.monotonic(), found
        return found

    async def _find_engine(self) -> str | None:
        for name in _ENGINES:
            path = shutil.which(name, path=self._environ.get("PATH"))
            if path is not None and (await self._run((path, "info"), _ANSWER_SECONDS))[0] == 0:
                return path
        return None

    async def check(self) -> None:
        """Raise unless containers can be had here."""
        if await self.engine() is None:
            raise RuntimeRefused(
                runtime="devcontainer",
                reason="neither docker nor podman answers on this runner. Start one, or use the runtime local.",
            )

    async def prepare(self, workspace: Workspace, runtime: Runtime, progress: Progress) -> None:
        """Read the file of a new workspace, and get or build its image."""
        path, file = await self._read(workspace, runtime.devcontainer_path)
        engine = await self.engine()
        if engine is None:
            await self.check()
            return
        inside = expanded(file.workspace_folder or f"/workspaces/{workspace.id}", workspace.path, "")
        image = await self._image(engine, workspace, path, file, progress)
        limits = runtime.resources
        made = Container(
            shown=Devcontainer(
                config_path=path,
                image=image,
                engine=Path(engine).name,
                workspace_folder=inside,
                container=_name(workspace.id),
            ),
            env={name: expanded(value, workspace.path, inside) for name, value in file.env.items()},
            user=file.user,
            cpu=limits.cpu if limits is not None else None,
            memory_mib=limits.memory_mib if limits is not None else None,
        )
        await self._after_creation(engine, workspace, made, file, progress)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_record(self._folder / f"{workspace.id}.json", made)

    async def _read(self, workspace: Workspace, wanted: str | None) -> tuple[str, DevcontainerFile]:
        for path in (checked_path(wanted),) if wanted is not None else USUAL_PATHS:
            with suppress(FileMissing):
                content = await self._library.use_files(workspace.id, functools.partial(_text, path=path))
                return path, parse(content, path)
        places = wanted or " or ".join(USUAL_PATHS)
        raise Unprocessable(reason=f"The repository has no {places}. Add one, or use the runtime local.")

    async def _image(
        self, engine: str, workspace: Workspace, path: str, file: DevcontainerFile, progress: Progress
    ) -> str:
        if file.build is not None:
            return await self._built(engine, workspace, path, file, progress)
        image = file.image or ""
        if image.startswith("-"):
            raise Unprocessable(reason=f"{path}: '{image[:80]}' is not the name of an image.")
        if (await self._run((engine, "image", "inspect", image), _ANSWER_SECONDS))[0] != 0:
            progress(f"Pulling {image}")
            await self._must((engine, "pull", "--quiet", image), f"The image {image} could not be pulled")
        return image

    async def _built(
        self, engine: str, workspace: Workspace, path: str, file: DevcontainerFile, progress: Progress
    ) -> str:
        build = file.build
        if build is None:
            raise AssertionError("the caller has seen it")
        root = Path(workspace.path)
        near = posixpath.dirname(path)
        dockerfile = root / checked_path(posixpath.normpath(posixpath.join(near, build.dockerfile)))
        context = root / checked_path(posixpath.normpath(posixpath.join(near, build.context)).lstrip("."))
        if not (dockerfile.resolve().is_relative_to(root) and context.resolve().is_relative_to(root)):
            raise Unprocessable(reason=f"{path}: its Dockerfile leads out of the repository.")
        name = f"ostler-{hashlib.sha256(f'{workspace.url}{workspace.commit}{path}'.encode()).hexdigest()[:16]}"
        flags = [word for key, value in build.args.items() for word in ("--build-arg", f"{key}={value}")]
        flags += ["--target", build.target] if build.target else []
        progress(f"Building {name} from {build.dockerfile}")
        command = (engine, "build", "--quiet", "-t", name, "-f", str(dockerfile), *flags, str(context))
        await self._must(command, f"The image of {path} could not be built")
        return name

    async def _after_creation(
        self, engine: str, workspace: Workspace, made: Container, file: DevcontainerFile, progress: Progress
    ) -> None:
        for words in _commands(file.post_create_command):
            progress(f"Running postCreateCommand: {' '.join(words)}")
            mounts = _mounts(workspace, made)
            command = (engine, "run", "--rm", "--init", *_flags(workspace.id, made), *mounts, made.shown.image, *words)
            code, said = await self._run(command, _BUILD_SECONDS)
            if code != 0:
                raise SetupFailed(exit=f"code {code}", said=said[-_LAST_WORDS:] or "none")

    # Using

    def get(self, workspace: str) -> Container | None:
        """The container of a workspace, if it has one."""
        return read_record(self._folder / f"{workspace}.json", Container)

    def copy(self, origin: str, workspace: str) -> None:
        """A fork runs in the same kind of container."""
        if (made := self.get(origin)) is not None:
            shown = msgspec.structs.replace(made.shown, container=_name(workspace))
            write_record(self._folder / f"{workspace}.json", msgspec.structs.replace(made, shown=shown))

    async def enter(self, made: Container, workspace: Workspace, spec: AgentSpec, launch: Launch) -> Launch:
        """The launch of an agent in a fresh container; one that an earlier start left is removed."""
        engine = await self.engine()
        if engine is None:
            await self.check()
        await self._run((str(engine), "rm", "--force", made.shown.container), _REMOVE_SECONDS)
        names = sorted(set(environment(spec, launch, {})) | set(made.env))
        variables = [word for name in names for word in ("--env", name)]
        there = [folder for folder in self._programs if folder.is_dir()]  # podman does not make what is missing
        programs = [word for folder in there for word in ("--volume", f"{folder}:{folder}:ro")]
        home = ("--volume", f"{spec.home}:{spec.home}")
        argv = (
            *(str(engine), "run", "--interactive", "--rm", "--init", "--name", made.shown.container),
            *_flags(workspace.id, made),
            *_mounts(workspace, made),
            *home,
            *programs,
            *variables,
            made.shown.image,
            *_inside(launch.argv),
        )
        return msgspec.structs.replace(launch, argv=argv, env={**self._for_engine(), **made.env, **launch.env})

    def _for_engine(self) -> dict[str, str]:
        return {name: self._environ[name] for name in _ENGINE_VARIABLES if name in self._environ}

    async def remove(self, workspace: str) -> None:
        """The workspace goes, and its container with it."""
        file = self._folder / f"{workspace}.json"
        made = self.get(workspace)
        if made is not None and (engine := await self.engine()) is not None:
            await self._run((engine, "rm", "--force", made.shown.container), _REMOVE_SECONDS)
        await asyncio.to_thread(file.unlink, missing_ok=True)

    async def _must(self, command: tuple[str, ...], problem: str) -> None:
        code, said = await self._run(command, _BUILD_SECONDS)
        if code != 0:
            raise RuntimeRefused(runtime="devcontainer", reason=f"{problem}: {said[-_LAST_WORDS:] or f'code {code}'}")

    async def _run(self, command: tuple[str, ...], seconds: float) -> tuple[int, str]:
        """The exit code of a short command and what it said; it never outlives this call."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**base_environment(self._environ), **self._for_engine(), "HOME": str(self._folder)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(seconds):
                said, _ = await process.communicate()
        except TimeoutError:
            return 124, f"{Path(command[0]).name} did not answer within {seconds:g} seconds"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, said.decode(errors="replace").strip()


def _text(files: Files, path: str) -> str:
    return files.read(path).data.decode(errors="replace")


def _name(workspace: str) -> str:
    return f"ostler-{workspace.lower()}"


def _flags(workspace: str, made: Container) -> tuple[str, ...]:
    flags = ["--label", f"{_LABEL}={workspace}"]
    flags += ["--user", made.user] if made.user else []
    flags += ["--cpus", f"{made.cpu:g}"] if made.cpu is not None else []
    flags += ["--memory", f"{made.memory_mib}m"] if made.memory_mib is not None else []
    return tuple(flags)


def _mounts(workspace: Workspace, made: Container) -> tuple[str, ...]:
    inside = made.shown.workspace_folder
    return (
        *("--volume", f"{workspace.path}:{inside}"),
        *("--volume", f"{workspace.path}:{workspace.path}"),
        *("--workdir", workspace.path),
    )


def _inside(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command as the container knows it: an interpreter of the host is replaced by the container's own."""
    name = Path(argv[0]).name
    own = next((each for each in _INTERPRETERS if name.startswith(each)), None)
    if own is None:
        return argv
    return ("python3" if own == "python" else own, *argv[1:])


def _commands(given: object) -> list[tuple[str, ...]]:
    match given:
        case str():
            return [("sh", "-c", given)]
        case tuple() | list():
            return [tuple(map(str, given))]
        case dict():
            return [words for each in given.values() for words in _commands(each)]
        case _:
            return []
