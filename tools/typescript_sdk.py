"""Builds the TypeScript SDK of sdk/typescript into its dist/, if its sources changed; `python -m tools.typescript_sdk`.

Its types are made from schema/openapi.json by openapi-typescript, the rest is compiled by TypeScript alone.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hatch_build

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "sdk" / "typescript"
DIST = SDK / "dist"
SCHEMA = ROOT / "schema" / "openapi.json"
_LOCK = ROOT / ".cache" / "sdk.lock"
_STAMP = SDK / "node_modules" / ".ostler-built"
_TYPES = SDK / "src" / "schema.ts"
_MAKE_TYPES = ("openapi-typescript/bin/cli.js", str(SCHEMA), "--default-non-nullable=false", "--output", str(_TYPES))


def build() -> Path:
    """Build unless the last build is of the same sources; gives the Node that did it."""
    node = hatch_build.find_node()
    if node is None:
        raise SystemExit("The TypeScript SDK needs Node 20.19 or newer. Install Node, or run `make web`.")
    with alone():
        hatch_build.install_packages(node, SDK)
        if not is_fresh():
            shutil.rmtree(DIST, ignore_errors=True)
            run(node, *_MAKE_TYPES)
            run(node, "typescript/bin/tsc")
            _STAMP.write_text(_digest())
    return node


@contextmanager
def alone() -> Iterator[None]:
    """Keep tests that run side by side from installing or building the same twice."""
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def is_fresh() -> bool:
    """Whether what was built is of the sources that are there."""
    return _STAMP.is_file() and (DIST / "index.js").is_file() and _STAMP.read_text() == _digest()


def run(node: Path, program: str, *args: str) -> str:
    """Run one of the programs of the SDK's packages in its folder; gives what it printed."""
    command = [str(node), str(SDK / "node_modules" / program), *args]
    env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}", "CI": "1", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=SDK, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"sdk: {program} ended with code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _digest() -> str:
    files = [path for path in sorted(SDK.glob("src/**/*")) if path.is_file() and path != _TYPES]
    files += [SCHEMA, SDK / "tsconfig.json", SDK / "package-lock.json"]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


if __name__ == "__main__":
    build()
    sys.exit(0)
