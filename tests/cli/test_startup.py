"""Asking for help is cheap, and its list is true."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from ostler.cli import root
from ostler.cli.lazy import COMMANDS
from tests.serving import clean_env

HEAVY = ("asyncio", "httpx", "litestar", "msgspec", "sqlite3", "ssl", "uvicorn", "ostler.app", "ostler.server")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument: str, tmp_path: Path) -> None:
    program = f"""
import sys
from ostler.cli import main
try:
    main([{argument!r}])
except SystemExit as end:
    assert end.code == 0
print("heavy:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_env(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_help_is_the_command_s_own(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert COMMANDS[name].rstrip(".") in command.get_short_help_str(limit=200).split(";")[0].rstrip(".")


def all_commands(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    children = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [path, *(leaf for name, child in children if child for leaf in all_commands(child, (*path, name)))]


def test_every_command_and_option_explains_itself() -> None:
    for path in all_commands(root, ()):
        command: click.Command = root
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), name)
            assert found is not None
            command = found
        assert command.help, path
