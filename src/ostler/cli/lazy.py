"""A command group that knows names and one line of help, and imports a command only to run it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

COMMANDS = {
    "serve": "Start the server.",
    "runner": "Run agents on this machine for a server elsewhere.",
    "runners": "See the machines that run agents, add and remove some.",
    "run": "Give an agent one prompt and watch it work.",
    "attach": "Follow a session and talk to its agent.",
    "prompts": "Save prompts and use them again.",
    "templates": "Keep definitions of agents, and start sessions, tasks and schedules with them.",
    "schedules": "Begin tasks of templates by the clock.",
    "triggers": "Let events from outside begin work.",
    "webhooks": "Tell others what happens.",
    "search": "Find what was said in sessions.",
    "import": "Go on with a conversation that an agent's own program has on the server's machine.",
    "task": "Order work on a repository.",
    "tasks": "Order work on repositories and see what became of it.",
    "sessions": "Create, steer and end sessions.",
    "session": "Work with one session.",
    "files": "Look at and change the files of a session.",
    "agents": "See, install and examine agents.",
    "credentials": "Find what agents can log in with.",
    "events": "Read what happened in sessions.",
    "follower": "Follow SESSION: run what its leader orders in this folder, and report what it prints.",
    "connect": "Reach the followers of a session.",
    "followers": "See the machines that hold copies of a session's files.",
    "asks": "Answer what agents ask.",
    "comments": "Comment on what an agent changed, and send it all as one prompt.",
    "catalogue": "See what tasks can be ordered with.",
    "remote": "See agents, runtimes and runners of the server.",
    "agent": "Have Ostler's own agent do TASK in this folder, without a server.",
    "acp": "Be an ACP agent for an editor.",
    "login": "Sign in to a server with your browser.",
    "logout": "Forget the token that `ostler login` got.",
    "whoami": "Tell who the server takes you for.",
    "tenants": "Make tenants: teams with projects of their own.",
    "projects": "Make projects, and see those that you may use.",
    "members": "See who may do what, and sign people out.",
    "keys": "Make API keys and revoke them.",
    "limits": "Say how much a tenant, a project or a key may have.",
    "usage": "Tell what you have and have used today.",
    "audit": "See who changed what and who was refused, and check that nothing was taken out.",
    "system": "Look at the server itself.",
    "database": "Move what a server remembers to another database.",
    "api": "Call any OPERATION of the server, such as daemon.create.",
    "doctor": "Check that everything is in place.",
    "completion": "Print the completion script for a shell.",
}

SECTIONS = {
    "Server": ("serve", "doctor", "runner", "runners", "system", "database", "api", "completion"),
    "Work": (
        *("run", "attach", "sessions", "session", "tasks", "task", "asks", "comments", "files", "events", "search"),
        *("import", "followers", "follower", "connect"),
    ),
    "Work without a person": ("templates", "schedules", "triggers", "webhooks"),
    "Agents": ("agents", "credentials", "prompts", "catalogue", "remote", "agent", "acp"),
    "People": ("login", "logout", "whoami", "tenants", "projects", "members", "keys", "limits", "usage", "audit"),
}
"""How the help lists them."""


class LazyGroup(click.Group):
    """Command `name` is the attribute `command` of the module `ostler.cli.commands.name`."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the words of a command; help is printed here."""
        with _pipes_of_our_own():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _pipes_of_our_own():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        module = "imports" if cmd_name == "import" else cmd_name  # which Python keeps for itself
        command: click.Command = import_module(f"ostler.cli.commands.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that was mistyped gets the nearest name."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = import_module("difflib").get_close_matches(name, COMMANDS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise click.UsageError(f"No such command '{name}'.{hint}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the names without importing them."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@contextmanager
def _pipes_of_our_own() -> Iterator[None]:
    """Let a broken pipe through to the caller: click ends the program itself if it sees the number of that error."""
    try:
        yield
    except BrokenPipeError:
        raise BrokenPipeError from None
