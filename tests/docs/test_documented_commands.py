"""The commands in the documentation do what is printed below them.

A `console` block is run against a fresh server, one command per `$ ` line. Where output is printed it must match, and
`...` stands for anything. A `python` block of the README or the tutorial runs against the same server.
"""

import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT, Block, blocks, name, pages
from tests.support.patience import stretched
from tests.support.serving import clean_env, running_server

_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Command(NamedTuple):
    """What is typed and what should be printed."""

    text: str
    expected: str


def _runnable(page: Path) -> list[Block]:
    whole_programs = page == ROOT / "README.md" or page.is_relative_to(ROOT / "docs" / "tutorial")
    languages = {"console", "python"} if whole_programs else {"console"}
    return [block for block in blocks(page) if block.language in languages]


def _commands(block: Block) -> Iterator[Command]:
    for part in f"\n{block.body}".split("\n$ ")[1:]:
        text, _, expected = part.partition("\n")
        yield Command(text, expected)


def _run(argv: list[str], env: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        argv,
        env=env,
        cwd=cwd,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=-1,
        stderr=-2,
        timeout=stretched(60),
        check=False,
    )
    assert done.returncode == 0, f"{argv[-1]}\n{done.stdout}"
    return done.stdout


def _check(command: Command, env: dict[str, str], cwd: Path) -> None:
    printed = _run(["sh", "-c", command.text], env, cwd)
    checker = doctest.OutputChecker()
    matches = not command.expected.strip() or checker.check_output(command.expected, printed, _FLAGS)
    assert matches, f"$ {command.text}\n{printed}\n--- the page says ---\n{command.expected}"


@pytest.mark.parametrize("page", [page for page in pages() if _runnable(page)], ids=name)
def test_the_commands_of_a_page_work_as_printed(page: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with running_server(tmp_path / "state") as server:
        path = f"{Path(sys.executable).parent}:{clean_env(tmp_path / 'home')['PATH']}"
        env = clean_env(tmp_path / "home", {"PATH": path, "OSTLER_ENDPOINT": server.url, "COLUMNS": "120"})
        for block in _runnable(page):
            if block.language == "python":
                _run([sys.executable, "-c", block.body.replace("http://127.0.0.1:2468", server.url)], env, work)
            for command in _commands(block) if block.language == "console" else ():
                _check(command, env, work)
