"""Going by a hub that a leader hosts, instead of by the server: its option, and what leads there."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ostler.cli.api import address_of, connect
from ostler.cli.root import Target
from ostler.client.errors import NotTrusted, ServerUnreachable
from ostler.client.transport import check_exposure
from ostler.wire.connecting import SocksAccess

TOKEN = "OSTLER_HUB_TOKEN"  # noqa: S105 - the name of the variable
Command = TypeVar("Command", bound=Callable[..., Any])


def by_hub(command: Command) -> Command:
    """Give a command the option that names a hub."""
    return click.option(
        "--hub",
        envvar="OSTLER_HUB",
        metavar="URL",
        help=f"Go by this hub of `ostler connect serve` instead of the server; its token is in {TOKEN}.",
    )(command)


def hub_or_server(target: Target, hub: str | None) -> Target:
    """Who has the proxy; a hub is called as a server is."""
    if not hub:
        return target
    token = os.environ.get(TOKEN)
    if not token:
        raise click.UsageError(f"{TOKEN} is not set: give it the token that `ostler connect serve` printed.")
    found = target._replace(endpoint=hub, token=token, project=None)
    check_exposure(address_of(found), token, insecure=bool(target.insecure))
    return found


def proxy_of(target: Target, hub: str | None, session: str) -> SocksAccess:
    """The proxy of a session, the server's or that of a hub."""
    with connect(hub_or_server(target, hub)) as client:
        try:
            return client.followers.proxy(session)
        except ServerUnreachable as error:
            if not hub or isinstance(error, NotTrusted):
                raise
            hint = f"Start one with `ostler connect serve {session}`."
            raise click.ClickException(f"No hub answers at {hub}. {hint}") from error
