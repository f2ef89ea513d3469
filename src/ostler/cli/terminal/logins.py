"""`ostler agents login` and the commands around it."""

import select
import sys

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.output import clean, facts, show
from ostler.cli.root import Target
from ostler.client.sync import Client
from ostler.wire.agents import AgentLogin, LoginMethod, LoginOffer, RunningLogin

_LOOK_SECONDS = 1.0
_UNDER_WAY = ("starting", "waiting")


@click.command(cls=ApiCommand)
@click.argument("agent")
@click.option("--key", help="Store a key: `-` reads it from standard input, where no list of processes shows it.")
@click.option("--variable", help="The variable that the key is for; the agent's usual one by default.")
@click.option("--way", help="One of the ways that `--status` lists, for an agent that has several.")
@click.option("--machine", is_flag=True, help="Share the login that is on the runner's machine.")
@click.option("--status", is_flag=True, help="Only tell whether it is logged in.")
@click.option("--logout", "leave", is_flag=True, help="Forget what it logs in with.")
@json_option
@click.pass_obj
def login(
    target: Target,
    agent: str,
    key: str | None,
    variable: str | None,
    way: str | None,
    machine: bool,
    status: bool,
    leave: bool,
    as_json: bool,
) -> None:
    """Log an agent in, by its own login unless a key or the machine's login is to be used."""
    if sum((key is not None, machine, status, leave)) > 1:
        raise click.UsageError("Give one of --key, --machine, --status and --logout.")
    with connect(target) as client:
        if leave:
            client.agents.logout(agent)
        elif key is not None:
            client.agents.login(agent, method="key", key=_read_key(key), variable=variable)
        elif machine:
            client.agents.login(agent, method="machine")
        elif not status:
            _log_in(client, agent, way)
        found = client.agents.login_state(agent)
    show(found, as_json, lambda: _text(found))


@click.command("login-state", cls=ApiCommand)
@click.argument("agent")
@json_option
@click.pass_obj
def login_state(target: Target, agent: str, as_json: bool) -> None:
    """Tell whether an agent is logged in, and how it can be."""
    with connect(target) as client:
        found = client.agents.login_state(agent)
    show(found, as_json, lambda: _text(found))


@click.command("login-answer", cls=ApiCommand)
@click.argument("agent")
@click.argument("code")
@json_option
@click.pass_obj
def login_answer(target: Target, agent: str, code: str, as_json: bool) -> None:
    """Give the login under way the code that it asks for."""
    with connect(target) as client:
        found = client.agents.login_answer(agent, code)
    show(found, as_json, lambda: _text(found))


@click.command("login-cancel", cls=ApiCommand)
@click.argument("agent")
@json_option
@click.pass_obj
def login_cancel(target: Target, agent: str, as_json: bool) -> None:
    """End the login under way."""
    with connect(target) as client:
        found = client.agents.login_cancel(agent)
    show(found, as_json, lambda: _text(found))


@click.command(cls=ApiCommand)
@click.argument("agent")
@json_option
@click.pass_obj
def logout(target: Target, agent: str, as_json: bool) -> None:
    """Forget what an agent logs in with; what is on the runner's machine itself stays."""
    with connect(target) as client:
        client.agents.logout(agent)
        found = client.agents.login_state(agent)
    show(found, as_json, lambda: f"Logged out {agent}.")


COMMANDS = (login, login_state, login_answer, login_cancel, logout)


def _read_key(given: str) -> str:
    if given != "-":
        raise click.UsageError(
            "Others on this machine can read a command line. Give the key on standard input: --key -"
        )
    key = sys.stdin.readline().strip()
    if not key:
        raise click.UsageError("No key came on standard input.")
    return key


def _log_in(client: Client, agent: str, way: str | None) -> None:
    """Start the agent's own login and lead through it."""
    method: LoginMethod = "subscription"
    offers = {offer.method: offer for offer in client.agents.login_state(agent).offers}
    if method not in offers:
        others = "--machine, or --key -" if "key" in offers else "--machine"
        raise click.ClickException(f"Agent '{agent}' has no login of its own that works here. Use {others}.")
    found = client.agents.login(agent, method=method, way=way)
    try:
        _follow(client, agent, found)
    except (KeyboardInterrupt, BrokenPipeError):
        client.agents.login_cancel(agent)
        raise


def _follow(client: Client, agent: str, found: AgentLogin) -> None:
    shown: tuple[str | None, ...] = ()
    listens = True
    while (running := found.running) is not None and running.step in _UNDER_WAY:
        if (running.url, running.code) != shown and running.url is not None:
            shown = (running.url, running.code)
            click.echo(_words(running), err=True)
        if select.select([sys.stdin] if listens else [], [], [], _LOOK_SECONDS)[0]:
            line = sys.stdin.readline()
            listens = bool(line)
            if line.strip():
                client.agents.login_answer(agent, line.strip())
        found = client.agents.login_state(agent)
    if running is None or running.step != "succeeded":
        why = running.message if running is not None else None
        raise click.ClickException(clean(why or "The login was ended."))


def _words(running: RunningLogin) -> str:
    lines = ["Open this address in a browser:", "", f"    {clean(running.url or '')}", ""]
    if running.code is not None:
        lines += [f"and enter the code {clean(running.code)}", ""]
    return "\n".join([*lines, "If the page shows a code, paste it here and press Enter. Ctrl-C gives up."])


def _text(found: AgentLogin) -> str:
    offers = [(_offer_name(offer), offer.about) for offer in found.offers]
    running = found.running
    return facts(
        [
            ("agent", found.agent),
            ("login", found.state.replace("_", " ")),
            ("because", found.reason),
            ("by", found.method),
            ("under way", running.step if running is not None and running.step in _UNDER_WAY else None),
            ("open", running.url if running is not None else None),
            ("code", running.code if running is not None else None),
            *offers,
        ]
    )


def _offer_name(offer: LoginOffer) -> str:
    name = f"{offer.method} {offer.way}" if offer.way is not None else offer.method
    return name if offer.available else f"({name})"
