"""`ostler system`: the server itself."""

import click

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.commands.whoami import rows_of
from ostler.cli.output import facts, json_text, put, show, table
from ostler.cli.root import Target
from ostler.wire.system import Ready

_json_anyway = click.option("--json", expose_value=False, is_flag=True, help="It is JSON anyway.")


@click.group(cls=Noun)
def command() -> None:
    """Look at the server itself."""


@command.command()
@json_option
@click.pass_obj
def health(target: Target, as_json: bool) -> None:
    """Tell whether the server's process answers."""
    with connect(target) as client:
        answer = client.system.health()
    show(answer, as_json, lambda: answer.status)


@command.command()
@json_option
@click.pass_obj
def providers(target: Target, as_json: bool) -> None:
    """Tell where people sign in to get a token."""
    with connect(target) as client:
        found = client.system.providers()
    rows = [(each.issuer, each.audience, each.client_id or "-") for each in found.items]
    rows += [(each.name, "-", f"in the browser: {each.path}") for each in found.browser]
    empty = "There is no provider: this server takes its token and API keys."
    show(found, as_json, lambda: table(("PROVIDER", "AUDIENCE", "CLIENT"), rows, empty))


@command.command()
@json_option
@click.pass_context
def ready(ctx: click.Context, as_json: bool) -> None:
    """Tell whether the server takes work; exit code 1 if not."""
    with connect(ctx.obj) as client:
        answer = client.system.ready()
    show(answer, as_json, lambda: _readiness(answer))
    ctx.exit(0 if answer.status == "ready" else 1)


@command.command()
@json_option
@click.pass_obj
def version(target: Target, as_json: bool) -> None:
    """Tell which server this is."""
    with connect(target) as client:
        answer = client.system.version()
    pairs = [("version", answer.version), ("api", answer.api), ("schema", answer.schema), ("python", answer.python)]
    show(answer, as_json, lambda: facts(pairs))


@command.command()
@_json_anyway
@click.pass_obj
def openapi(target: Target) -> None:
    """Print the OpenAPI document."""
    with connect(target) as client:
        click.echo(json_text(client.system.openapi()))


@command.command()
@json_option
@click.pass_obj
def whoami(target: Target, as_json: bool) -> None:
    """Tell who the server takes you for: the same as `ostler whoami`."""
    with connect(target) as client:
        found = client.system.whoami()
    show(found, as_json, lambda: facts(rows_of(found)))


@command.command()
@json_option
@click.pass_obj
def metrics(target: Target, as_json: bool) -> None:
    """Print numbers in Prometheus' text format."""
    with connect(target) as client:
        put(client.system.metrics().encode(), None, as_json)


@command.command()
@click.argument("path")
@_json_anyway
@click.pass_obj
def schema(target: Target, path: str) -> None:
    """Print a JSON Schema, such as wire.json or agents/mock.json."""
    with connect(target) as client:
        click.echo(json_text(client.system.schema(path)))


def _readiness(answer: Ready) -> str:
    return facts([("status", answer.status), *answer.checks.items()])
