"""`ostler agents`: what can be run."""

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import facts, show, table
from ostler.cli.root import Target
from ostler.wire.agents import Agent


@click.group(cls=Noun)
def command() -> None:
    """See and install agents."""


@command.command("list")
@json_option
@click.pass_obj
def list_agents(target: Target, as_json: bool) -> None:
    """List all agents."""
    with connect(target) as client:
        found = client.agents.list()
    rows = [(agent.id, agent.name, agent.installed, agent.version, agent.install_hint) for agent in found.items]
    show(found, as_json, lambda: table(("AGENT", "NAME", "INSTALLED", "VERSION", "HINT"), rows, "No agents."))


@command.command()
@click.argument("agent")
@json_option
@click.pass_obj
def get(target: Target, agent: str, as_json: bool) -> None:
    """Show one agent."""
    with connect(target) as client:
        found = client.agents.get(agent)
    show(found, as_json, lambda: _agent_text(found))


@command.command()
@click.argument("agent")
@click.option("--version", help="Which version; the newest known to work by default.")
@json_option
@click.pass_obj
def install(target: Target, agent: str, version: str | None, as_json: bool) -> None:
    """Install an agent."""
    with connect(target) as client:
        done = client.agents.install(agent, version=version)
    text = f"Installed {done.agent} {done.version or ''}".rstrip() + (f" in {done.path}" if done.path else "")
    show(done, as_json, lambda: text)


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


def _agent_text(agent: Agent) -> str:
    able = [name for name, value in msgspec.structs.asdict(agent.capabilities).items() if value]
    return facts(
        [
            ("id", agent.id),
            ("name", agent.name),
            ("installed", agent.installed),
            ("version", agent.version),
            ("path", agent.path),
            ("hint", agent.install_hint),
            ("modes", [mode.id for mode in agent.modes]),
            ("models", [model.id for model in agent.models]),
            ("credentials", agent.credentials_available),
            ("can", able),
        ]
    )
