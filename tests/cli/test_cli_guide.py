"""The commands in the guide exist and take the options shown."""

import re
import shlex
from pathlib import Path

import click
import pytest

from ostler.cli import root
from ostler.cli.root import Target

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "cli.md"
OTHERS = ("saved-prompts.md", "templates.md", "schedules.md", "triggers.md", "webhooks.md")
_TEXTS = "".join(path.read_text() for path in (GUIDE, *map(GUIDE.with_name, OTHERS)))
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", _TEXTS, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if re.match(r"ostler +[^# ]", line)]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_guide_is_understood(line: str) -> None:
    command: click.Command = root
    arguments = shlex.split(line, comments=True)[1:]
    context = click.Context(root, obj=Target("http://127.0.0.1:1", None))
    while isinstance(command, click.Group):
        found = command.get_command(context, arguments.pop(0))
        assert found is not None
        command = found
    assert command.make_context(command.name, arguments, parent=context).command is command
