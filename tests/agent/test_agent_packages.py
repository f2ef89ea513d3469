"""The agent where its packages are not installed: it goes on with the Python that has them, or says what is missing."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ostler.agent import start

INTERPRETER = Path(sys.executable).resolve()


def _away(folder: Path) -> Path:
    return folder / "nowhere"


def _for_another_loader(folder: Path) -> Path:
    """As a machine with musl sees it."""
    return _changed(folder, INTERPRETER.read_bytes().replace(b"/ld-linux-", b"/ld-nolibc", 1))


def _for_another_processor(folder: Path) -> Path:
    program = bytearray(INTERPRETER.read_bytes())
    program[18:20] = b"\x08\x00"
    return _changed(folder, bytes(program))


def _changed(folder: Path, content: bytes) -> Path:
    program = folder / "python3"
    program.write_bytes(content)
    program.chmod(0o755)
    return program


def _link(folder: Path) -> Path:
    """What runs, but has no packages either."""
    (folder / "other").symlink_to(INTERPRETER)
    return folder / "other"


def _ran(packages: Path, own: Path) -> "subprocess.CompletedProcess[str]":
    options = (f"packages={packages}", "python=3.11", f"own={own}")
    words = [word for option in options for word in ("-X", option)]
    command = [sys.executable, "-I", "-X", "utf8", *words, start.__file__]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={})


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (_away, "that of the server is not brought along"),
        (_for_another_loader, "that of the server needs glibc, which is not there"),
        (_for_another_processor, "that of the server does not run: Exec format error"),
        (_link, "that of the server does not run: ModuleNotFoundError: No module named 'msgspec'"),
        (lambda _: INTERPRETER, "there is no other"),
    ],
)
def test_why_it_cannot_run_is_said(tmp_path: Path, own: Callable[[Path], Path], words: str) -> None:
    done = _ran(tmp_path, own(tmp_path))
    version = ".".join(map(str, sys.version_info[:2]))
    needs = "Its packages are for Python 3.11 with glibc; this is Python "
    hint = "Use an image with glibc and Python 3.11, such as Debian's, or another agent."
    assert done.returncode == 2
    assert f"{needs}{version} (No module named 'msgspec'), and {words}. {hint}" in done.stderr


def test_with_its_packages_it_waits_for_its_first_line() -> None:
    done = _ran(Path(msgspec.__file__).parents[1], _away(Path("/")))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
