"""Starts the agent where its packages are not installed, as in a container that only has them mounted.

It is run as a script, with `-X packages=FOLDER -X python=VERSION -X own=PROGRAM` for where they are, what they are for,
and the Python that they were installed with. On another Python that cannot read them it goes on with that one, if it
is there and runs, and else says in plain words why not. Standard library only, and nothing that an old Python does
not read.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Optional

_IMPORTS = ("msgspec", "httpx", "ssl")
_OPTIONS = ("packages", "python", "own")
_INSTALLED = ("site-packages", "dist-packages")
_LAST_WORDS = 300


def main() -> int:
    """Run the agent, or say why not."""
    packages, version, own = (str(sys._xoptions[name]) for name in _OPTIONS)
    sys.path[:] = [place for place in sys.path if Path(place).name not in _INSTALLED]  # of other versions than ours
    sys.path += [str(Path(__file__).resolve().parents[2]), packages]
    is_own = os.path.realpath(sys.executable) == own
    try:
        _import_msgspec()
        for name in () if is_own else _IMPORTS[1:]:  # they take long, and nobody shall wait for them
            importlib.import_module(name)
    except ImportError as error:
        why = "there is no other" if is_own else _why_not(own, packages)
        if why is None:
            options = [word for name in _OPTIONS for word in ("-X", f"{name}={sys._xoptions[name]}")]
            os.execv(own, [own, "-I", "-S", "-X", "utf8", *options, *sys.argv])  # noqa: S606  ours, without a shell
        found = ".".join(map(str, sys.version_info[:2]))
        print(
            f"Ostler's own agent cannot run here. Its packages are for Python {version} with glibc; this is Python "
            f"{found} ({error}), and {why}. Use an image with glibc and Python {version}, such as Debian's, or another "
            "agent.",
            file=sys.stderr,
        )
        return 2
    return int(importlib.import_module("ostler.agent.__main__").main())


def _import_msgspec() -> None:
    """It does as well without another package, which takes as long to load as all the rest of it."""
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # so it is not found
    try:
        importlib.import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def _why_not(own: str, packages: str) -> Optional[str]:  # noqa: UP045  an old Python reads this
    """Why the Python that the packages were installed with is of no use here; None if it is."""
    if not Path(own).exists():
        return "that of the server is not brought along"
    import subprocess  # noqa: PLC0415  the agent is ready before anything loads it

    code = f"import sys; sys.path.append({packages!r}); import {', '.join(_IMPORTS)}"
    try:
        tried = subprocess.run(
            [own, "-I", "-S", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except FileNotFoundError:
        return "that of the server needs glibc, which is not there"
    except OSError as error:
        return f"that of the server does not run: {error.strerror}"
    words = tried.stdout.decode("utf-8", "replace").strip()[-_LAST_WORDS:].splitlines() or ["it said nothing"]
    return f"that of the server does not run: {words[-1]}" if tried.returncode != 0 else None


if __name__ == "__main__":
    sys.exit(main())
