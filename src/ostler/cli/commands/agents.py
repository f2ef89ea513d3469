"""`ostler agents`: what can be run."""

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.commands.conform import conform, one_shot, record
from ostler.cli.output import clean, facts, show, table
from ostler.cli.root import Target
from ostler.cli.terminal import logins
from ostler.client import Client, ClientError
from ostler.wire.agents import Agent, Installed

_LOOK_SECONDS = 0.5


@click.group(cls=Noun)
def command() -> None:
    """See, install and examine agents."""


command.add_command(conform)
command.add_command(record)
command.add_command(one_shot)
for each in logins.COMMANDS:
    command.add_command(each)


@command.command("list")
@json_option
@click.pass_obj
def list_agents(target: Target, as_json: bool) -> None:
    """List all agents."""
    with connect(target) as client:
        found = client.agents.list()
    rows = [(each.id, each.name, each.installed, each.version, _hint(each)) for each in found.items]
    show(found, as_json, lambda: table(("AGENT", "NAME", "INSTALLED", "VERSION", "HINT"), rows, "No agents."))


@command.command()
@click.argument("agent")
@click.option("--system-prompt", is_flag=True, help="Show its system prompt alone.")
@json_option
@click.pass_obj
def get(target: Target, agent: str, system_prompt: bool, as_json: bool) -> None:
    """Show one agent."""
    with connect(target) as client:
        found = client.agents.get(agent)
    if system_prompt:
        prompt = found.system_prompt
        if prompt is None:
            raise click.ClickException(f"Agent '{found.id}' does not show its system prompt; agent 'ostler' does")
        show(prompt, as_json, lambda: prompt.text)
        return
    show(found, as_json, lambda: _agent_text(found))


@command.command()
@click.argument("agent")
@click.option("--version", help="Which version; the newest known to work by default.")
@click.option("--reinstall", is_flag=True, help="Install it anew if it is there already.")
@json_option
@click.pass_obj
def install(target: Target, agent: str, version: str | None, reinstall: bool, as_json: bool) -> None:
    """Install an agent on the runner's machine; what happens is told on standard error."""
    with ThreadPoolExecutor(1) as beside, connect(target) as client, connect(target) as watcher:
        request = beside.submit(client.agents.install, agent, version=version, reinstall=reinstall)
        _watch(watcher, agent, request)
        done = request.result()
    text = f"Installed {done.agent} {done.version or ''}".rstrip() + (f" in {done.path}" if done.path else "")
    show(done, as_json, lambda: text)
    if done.version_hint is not None:
        click.echo(clean(done.version_hint), err=True)


def _watch(client: Client, agent: str, request: "Future[Installed]") -> None:
    """Tell each new step of an installation until it is over."""
    started, shown = time.monotonic(), None
    while wait([request], timeout=_LOOK_SECONDS).not_done:
        try:
            step = client.agents.get(agent).installing
        except ClientError:
            continue  # the request itself tells what is wrong
        if step is not None and step != shown:
            shown = step
            click.echo(f"{time.monotonic() - started:4.0f} s  {clean(step)}", err=True)


@command.command()
@click.argument("agent")
@json_option
@click.pass_obj
def modes(target: Target, agent: str, as_json: bool) -> None:
    """List the ways of working an agent offers."""
    with connect(target) as client:
        found = client.agents.modes(agent)
    rows = [(mode.id, mode.name, mode.description) for mode in found.modes]
    show(found, as_json, lambda: table(("MODE", "NAME", "DESCRIPTION"), rows, "No modes."))


@command.command()
@click.argument("agent")
@json_option
@click.pass_obj
def models(target: Target, agent: str, as_json: bool) -> None:
    """List the models an agent offers."""
    with connect(target) as client:
        found = client.agents.models(agent)
    rows = [(model.id, model.name, model.variants) for model in found.models]
    show(found, as_json, lambda: table(("MODEL", "NAME", "VARIANTS"), rows, "No models."))


def _hint(agent: Agent) -> str | None:
    """What could be done about it."""
    return agent.install_hint or agent.version_hint


def _agent_text(agent: Agent) -> str:
    able = [name for name, value in msgspec.to_builtins(agent.capabilities).items() if value]
    return facts(
        [
            ("id", agent.id),
            ("name", agent.name),
            ("installed", agent.installed),
            ("version", agent.version),
            ("path", agent.path),
            ("versions", agent.versions),
            ("installing", agent.installing),
            ("hint", _hint(agent)),
            ("modes", [mode.id for mode in agent.modes]),
            ("models", [model.id for model in agent.models]),
            ("system prompt", agent.system_prompt and f"{agent.system_prompt.version} (see it with --system-prompt)"),
            ("credentials", agent.credentials_available),
            ("can", able),
            ("only by itself", [name for name, value in agent.coverage.items() if value == "native"]),
        ]
    )
