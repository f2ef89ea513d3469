"""What every command that talks to a server shares."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ostler.cli import signed_in
from ostler.cli.absence import Absence
from ostler.cli.root import Target
from ostler.cli.values import WORDS
from ostler.client.plain import PlainTransport, suits
from ostler.client.sync import Client
from ostler.client.transport import ANSWER_SECONDS, check_address

if TYPE_CHECKING:
    from ostler.client.aio import AsyncClient

Command = TypeVar("Command", bound=Callable[..., Any])
_BEGINNING = re.compile(r"ses_[0-9A-Z]{1,25}")
"""Less than the whole id of a session."""
_SESSIONS = ("session", "task")
"""Arguments and options that name one."""
_MOST_NAMED = 5


class ApiCommand(click.Command):
    """A command that takes --endpoint and --token in its own place too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in self.params:
            if each.name in WORDS and each.type is click.STRING:
                each.type = WORDS[each.name]
        for name in Target._fields:
            flag = True if name == "insecure" else None
            if any(f"--{name}" in each.opts for each in self.params):  # such as the --project of tasks
                continue
            option = [f"--{name.replace('_', '-')}"]
            made = click.Option(option, is_flag=flag, default=None, expose_value=False, hidden=True, callback=_override)
            self.params.append(made)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; the beginning of a session's id is as good as the whole."""
        for each in _SESSIONS:
            given = ctx.params.get(each)
            if isinstance(given, str) and _BEGINNING.fullmatch(given):
                ctx.params[each] = _whole(ctx.obj, given)
        return super().invoke(ctx)


class Noun(click.Group):
    """A group with one verb per operation of the API."""

    command_class = ApiCommand


def _override(ctx: click.Context, option: click.Parameter, value: str | bool | None) -> None:
    if value is not None and option.name is not None:
        top = ctx.find_root()
        top.obj = top.obj._replace(**{option.name: value})
        ctx.obj = top.obj


def _whole(target: Target, beginning: str) -> str:
    """The only session that is meant; what is a key, or begins none, is left to the server."""
    with connect(target) as client:
        items = client.sessions.list(q=beginning, per_page=_MOST_NAMED + 1).items
    if any(each.key == beginning for each in items):
        return beginning
    found = [each for each in items if each.id.startswith(beginning)]
    if len(found) > 1:
        listed = ", ".join(f"{each.id} ({each.title})" if each.title else each.id for each in found[:_MOST_NAMED])
        raise click.ClickException(f"'{beginning}' may be several sessions: {listed}. Say more of one.")
    return found[0].id if found else beginning


def connect(target: Target, *, seconds: float = ANSWER_SECONDS, as_stranger: bool = False) -> Client:
    """A client for the chosen server; an answer may take so long, and `as_stranger` shows it no token."""
    address = address_of(target)
    token = None if as_stranger else token_of(target)
    transport = PlainTransport(address, token, seconds, target.project) if suits(address, token) else None
    insecure = target.insecure
    return Client(
        address,
        token,
        timeout=seconds,
        ca_file=target.ca_file,
        insecure=insecure,
        project=target.project,
        on_break=Absence(),
        transport=transport,
    )


def connect_async(target: Target) -> "AsyncClient":
    """An asynchronous client for the chosen server; few commands need one, and loading it takes long."""
    client = import_module("ostler.client.aio").AsyncClient
    address = address_of(target)
    token = token_of(target)
    made: AsyncClient = client(
        address,
        token,
        ca_file=target.ca_file,
        insecure=target.insecure,
        project=target.project,
        on_break=Absence(),
    )
    return made


def token_of(target: Target) -> str | None:
    """The token that was given, or else the one that `ostler login` got for the chosen server."""
    return target.token or signed_in.token_for(address_of(target), target.ca_file)


def address_of(target: Target) -> str:
    """Where the server is."""
    address = target.endpoint if "://" in target.endpoint else f"http://{target.endpoint}"
    check_address(address)
    return address


def json_option(command: Command) -> Command:
    """Give a command the --json flag."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")(command)


def pairs(_ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE options."""
    wrong = [value for value in values if not value.partition("=")[1] or value.startswith("=")]
    if wrong:
        raise click.BadParameter(f"'{wrong[0]}' is not NAME=VALUE.", param=option)
    return {name: text for name, _, text in (value.partition("=") for value in values)}
