"""The runtimes of JavaScript besides Node, as npm has them."""

import platform
from pathlib import Path

RUNTIMES = Path(__file__).parents[1] / "client" / "typescript" / "runtimes"
"""Where they are installed by its package-lock.json."""
_IS_ARM = platform.machine() in {"aarch64", "arm64"}


def runtime(package: str, arm: str, intel: str, program: str) -> str:
    """The program in the package of a runtime for this machine."""
    return str(RUNTIMES / "node_modules" / f"{package}-{arm if _IS_ARM else intel}" / program)
