"""The page about the command line, from the commands themselves."""

from collections.abc import Iterator

import click

from tools.reference.markdown import page

_INTRODUCTION = """
Every command with its options, as `--help` prints them. For how to use them, see the
[guide to the command line](../guides/cli.md).
"""


def cli_page(root: click.Command) -> str:
    """The reference of all commands."""
    blocks = [block for path, help_text in _walk(root, None, "ostler") for block in _section(path, help_text)]
    return page("Command line", _INTRODUCTION, *blocks)


def _section(path: str, help_text: str) -> tuple[str, str]:
    return f"## {path}", f"```text\n{help_text}\n```"


def _walk(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
    settings = {**command.context_settings, "terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                yield from _walk(child, context, child_name)
