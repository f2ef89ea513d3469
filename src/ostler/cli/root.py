"""The top of the command tree: global options, and every failure as one line and an exit code."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from traceback import print_exc
from typing import Any, NamedTuple

import click

from ostler import __version__
from ostler.cli.lazy import LazyGroup

DEFAULT_PORT = "2468"
INTERRUPTED = 130
READER_LEFT = 141
"""What a shell says of a program that SIGPIPE ended."""


class Target(NamedTuple):
    """Which server a command talks to."""

    endpoint: str
    token: str | None
    ca_file: str | None = None
    insecure: bool = False
    """Whether the token may go to another machine without TLS."""
    project: str | None = None
    """The one that the command is about, for a token that may use several."""


def default_endpoint(port: str | None) -> str:
    """The server on this machine."""
    return f"http://127.0.0.1:{port or DEFAULT_PORT}"


def target_of(options: Mapping[str, Any]) -> Target:
    """The server that the options name, or the one on this machine."""
    endpoint = options.get("endpoint") or default_endpoint(os.environ.get("OSTLER_PORT"))
    insecure = bool(options.get("insecure"))
    return Target(
        endpoint, options.get("token") or None, options.get("ca_file") or None, insecure, options.get("project") or None
    )


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ostler %(version)s")
@click.option("--endpoint", envvar="OSTLER_ENDPOINT", metavar="URL", help="Server to talk to.")
@click.option("--token", envvar="OSTLER_TOKEN", metavar="TOKEN", help="Token the server wants.")
@click.option("--ca-file", envvar="OSTLER_CA_FILE", metavar="FILE", help="Authorities to trust, for https.")
@click.option(
    "--insecure", is_flag=True, envvar="OSTLER_INSECURE", help="Send the token by http to another machine too."
)
@click.option("--project", envvar="OSTLER_PROJECT", metavar="PROJECT", help="Project to work in.")
@click.option("--agent", metavar="AGENT", help="Alone: the agent to talk to in this folder.")
@click.option("--new", "is_new", is_flag=True, help="Alone: start another session in this folder.")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
@click.pass_context
def root(
    ctx: click.Context,
    /,
    agent: str | None,
    is_new: bool,
    **_options: object,
) -> None:
    """One server for every coding agent.

    Alone at a terminal, `ostler` talks to an agent in the folder that you stand in.
    """
    ctx.obj = target_of(ctx.params)
    if ctx.invoked_subcommand is not None:
        if agent is not None or is_new:
            raise click.UsageError(f"{'--agent' if agent is not None else '--new'} is for `ostler` alone", ctx)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.exceptions.NoArgsIsHelpError(ctx)
    import_module("ostler.cli.terminal.here").talk_here(ctx.obj, agent, is_new=is_new)


def run(arguments: list[str]) -> int:
    """Run one command; never shows a traceback unless asked to."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # httpx's own command line loads rich, pygments
    try:
        code = root.main(arguments, prog_name="ostler", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - the reader left; nothing may fail at exit
        return READER_LEFT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # a group without a verb: its help, as it is laid out
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the edge: everything becomes one line
        return _failed(error, arguments)
    return code if isinstance(code, int) else 0


def _failed(error: Exception, arguments: list[str]) -> int:
    message, code = import_module("ostler.cli.failures").explain(error)
    if "--debug" in arguments:
        print_exc()
    click.echo(f"{click.style('Error:', fg='red')} {message}", err=True)
    return int(code)
