"""Words that a shell completes by asking the server: sessions, agents, models."""

from importlib import import_module
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from ostler.client.sync import Client

_SECONDS = 0.5
"""A shell waits no longer; without an answer it offers nothing."""
_MOST = 50


class ServerWord(click.types.StringParamType):
    """Any text; a shell is offered what the server has of its kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What begins like that."""
        try:
            offered = self._offered(ctx)
        except Exception:  # noqa: BLE001 - a shell must not see anything but words
            return []
        return [CompletionItem(word, help=text or None) for word, text in offered if word.startswith(incomplete)]

    def _offered(self, ctx: click.Context) -> list[tuple[str, str]]:
        root, api = import_module("ostler.cli.root"), import_module("ostler.cli.api")
        with api.connect(root.target_of(ctx.find_root().params), seconds=_SECONDS) as client:
            return _KINDS[self._kind](client, ctx)


def _sessions(client: "Client", _ctx: click.Context) -> list[tuple[str, str]]:
    return [(each.key, each.title or "") for each in client.sessions.list(per_page=_MOST).items]


def _agents(client: "Client", _ctx: click.Context) -> list[tuple[str, str]]:
    return [(each.id, each.name) for each in client.agents.list().items]


def _models(client: "Client", ctx: click.Context) -> list[tuple[str, str]]:
    """Those of the agent that is named before, or of all."""
    before = {*ctx.args, ctx.params.get("agent"), *(ctx.params.get("words") or ())}
    agents = client.agents.list().items
    named = [each for each in agents if not before.isdisjoint((each.id, *each.aliases))]
    return [(model.id, model.name) for each in named or agents for model in each.models]


def _prompts(client: "Client", _ctx: click.Context) -> list[tuple[str, str]]:
    return [(each.name, each.description or "") for each in client.prompts.list().items]


_KINDS = {"session": _sessions, "agent": _agents, "model": _models, "words": _agents, "prompt": _prompts}
WORDS = {name: ServerWord(name) for name in _KINDS}
"""By the name of the argument or option."""
