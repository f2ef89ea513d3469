"""Starts the agent where its packages are not installed, as in a container that only has them mounted.

It is run as a script, with `-X packages=FOLDER -X python=VERSION` for where they are and what they are for, and says in
plain words why it cannot. Standard library only, and nothing that an old Python does not read.
"""

import importlib
import runpy
import sys
from pathlib import Path


def main() -> int:
    """Run the agent, or say why not."""
    folder, version = (str(sys._xoptions[name]) for name in ("packages", "python"))
    sys.path += [str(Path(__file__).resolve().parents[2]), folder]
    try:
        importlib.import_module("msgspec")
        importlib.import_module("httpx")
    except ImportError as error:
        found = ".".join(map(str, sys.version_info[:2]))
        print(
            f"Ostler's own agent cannot run here. Its packages are for Python {version} with glibc, and this is Python "
            f"{found}: {error}. Use an image with Python {version}, such as Debian's, or another agent.",
            file=sys.stderr,
        )
        return 2
    runpy.run_module("ostler.agent", run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
