"""`ostler completion`: tab completion for a shell."""

import click
from click.shell_completion import get_completion_class

from ostler.cli.root import root


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    For bash: eval "$(ostler completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for '{shell}'")
    click.echo(kind(root, {}, "ostler", "_OSTLER_COMPLETE").source())
