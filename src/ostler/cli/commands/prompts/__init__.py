"""`ostler prompts`: prompts that people saved to use them again."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.options import prompt_text
from ostler.cli.output import clean, removed, show, table
from ostler.cli.root import Target
from ostler.cli.values import WORDS
from ostler.wire.prompts import SavedPrompt

_EMPTY = "No prompts are saved. Save one: ostler prompts save review 'Review $ARGUMENTS.'"
_SHOWN = 60
_description = click.option("--description", metavar="TEXT", help="One line for whoever looks for it.")
_name = click.argument("name", type=WORDS["prompt"])


@click.group(cls=Noun)
def command() -> None:
    """Save prompts and use them again.

    `$ARGUMENTS` in a prompt stands for what is given when it is used: ostler run --prompt review src/app.py
    """


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the saved prompts."""
    with connect(target) as client:
        found = client.prompts.list()
    rows = [(each.name, each.description or _beginning(each.text)) for each in found.items]
    show(found, as_json, lambda: table(("PROMPT", "DESCRIPTION"), rows, _EMPTY))


def _beginning(text: str) -> str:
    line = " ".join(text[:500].split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


@command.command("show")
@_name
@json_option
@click.pass_obj
def show_(target: Target, name: str, as_json: bool) -> None:
    """Print the text of a saved prompt."""
    with connect(target) as client:
        found = client.prompts.show(name)
    show(found, as_json, lambda: clean(found.text))


@command.command()
@click.argument("name")
@click.argument("text")
@_description
@json_option
@click.pass_obj
def save(target: Target, name: str, text: str, description: str | None, as_json: bool) -> None:
    """Save a prompt; TEXT `-` reads standard input."""
    with connect(target) as client:
        saved = client.prompts.save(name, prompt_text(text), description=description)
    show(saved, as_json, lambda: _reported(saved))


@command.command()
@_name
@click.option("--name", "new_name", metavar="NAME", help="Another name.")
@click.option("--text", help="Another text; `-` reads standard input.")
@_description
@json_option
@click.pass_obj
def edit(
    target: Target, name: str, new_name: str | None, text: str | None, description: str | None, as_json: bool
) -> None:
    """Change a saved prompt; what is not given stays, and an empty description is none."""
    if new_name is None and text is None and description is None:
        raise click.UsageError("Say what is to change: --name, --text or --description")
    with connect(target) as client:
        given = None if text is None else prompt_text(text)
        saved = client.prompts.edit(name, new_name=new_name, text=given, description=description)
    show(saved, as_json, lambda: _reported(saved))


def _reported(saved: SavedPrompt) -> str:
    return f"Saved. Use it with `ostler run --prompt {saved.name}`, or write /{saved.name} in the web UI."


@command.command()
@_name
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Forget a saved prompt."""
    with connect(target) as client:
        client.prompts.remove(name)
    removed(name, as_json, f"Removed the prompt '{name}'.")
