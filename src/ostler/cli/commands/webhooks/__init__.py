"""`ostler webhooks`: addresses of others that are told what happens."""

from typing import Any

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option
from ostler.cli.output import facts, removed, show, table
from ostler.cli.root import Target
from ostler.wire.webhooks import Webhook, WebhookDelivery

_EMPTY = "There are no webhooks. Make one: ostler webhooks create https://example.com/hook --event turn.ended"
_webhook_id = click.argument("webhook")
_call_id = click.argument("call")
_secret = click.option("--secret", metavar="SECRET", help="What calls are signed with: whsec_ and base64.")
_content = click.option("--content/--no-content", default=None, help="Send whole events, or only what happened where.")
_ordered = click.option(
    "--ordered/--unordered", default=None, help="One call after the other for each session, or not."
)


@click.group(cls=Noun)
def command() -> None:
    """Tell others what happens."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the webhooks."""
    with connect(target) as client:
        found = client.webhooks.list()
    rows = [(each.id, each.url, " ".join(each.events), _health(each)) for each in found.items]
    show(found, as_json, lambda: table(("WEBHOOK", "ADDRESS", "EVENTS", "STATE"), rows, _EMPTY))


@command.command()
@click.argument("url")
@click.option("--event", "events", multiple=True, required=True, metavar="TYPE", help="turn.ended, session.* or *.")
@_secret
@click.option("--session", metavar="ID", help="Only of this session.")
@click.option("--template", metavar="NAME", help="Only of sessions that began with this template.")
@_content
@_ordered
@json_option
@click.pass_obj
def create(target: Target, /, url: str, events: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Tell an address what happens from now on."""
    with connect(target) as client:
        made = client.webhooks.create(url, events, **_given(given))
    show(made, as_json, lambda: _about(made))


@command.command("show")
@_webhook_id
@json_option
@click.pass_obj
def show_(target: Target, webhook: str, as_json: bool) -> None:
    """Show a webhook, and whether its calls are taken."""
    with connect(target) as client:
        found = client.webhooks.show(webhook)
    show(found, as_json, lambda: _about(found))


@command.command()
@_webhook_id
@click.option("--url", metavar="URL", help="Another address.")
@click.option("--event", "events", multiple=True, metavar="TYPE", help="Other types of events.")
@_secret
@_content
@_ordered
@click.option("--pause/--resume", "paused", default=None, help="Make no calls, or go on.")
@json_option
@click.pass_obj
def edit(target: Target, /, webhook: str, as_json: bool, **given: Any) -> None:
    """Change a webhook; what is not given stays."""
    with connect(target) as client:
        changed = client.webhooks.edit(webhook, **_given(given))
    show(changed, as_json, lambda: _about(changed))


@command.command("test")
@_webhook_id
@json_option
@click.pass_obj
def test_(target: Target, webhook: str, as_json: bool) -> None:
    """Make a call of the type webhook.test."""
    with connect(target) as client:
        made = client.webhooks.test(webhook)
    show(made, as_json, lambda: _about_call(made))


@command.command()
@_webhook_id
@json_option
@click.pass_obj
def deliveries(target: Target, webhook: str, as_json: bool) -> None:
    """List the last calls and what became of each."""
    with connect(target) as client:
        found = client.webhooks.deliveries(webhook)
    rows = [(each.id, each.type, each.session, each.state, each.tries, each.reason) for each in found.items]
    headings = ("CALL", "EVENT", "SESSION", "STATE", "TRIES", "WHY")
    show(found, as_json, lambda: table(headings, rows, "Nothing has happened yet."))


@command.command()
@_webhook_id
@_call_id
@json_option
@click.pass_obj
def delivery(target: Target, webhook: str, call: str, as_json: bool) -> None:
    """Show a call with what is sent."""
    with connect(target) as client:
        found = client.webhooks.delivery(webhook, call)
    content = msgspec.json.format(msgspec.json.encode(found.content)).decode()
    show(found, as_json, lambda: f"{_about_call(found)}\n{content}")


@command.command()
@_webhook_id
@_call_id
@json_option
@click.pass_obj
def replay(target: Target, webhook: str, call: str, as_json: bool) -> None:
    """Make a call once more, or now instead of later."""
    with connect(target) as client:
        made = client.webhooks.replay(webhook, call)
    show(made, as_json, lambda: _about_call(made))


@command.command()
@_webhook_id
@json_option
@click.pass_obj
def remove(target: Target, webhook: str, as_json: bool) -> None:
    """Forget a webhook with its calls."""
    with connect(target) as client:
        client.webhooks.remove(webhook)
    removed(webhook, as_json, f"Removed the webhook '{webhook}'.")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, ())}


def _health(found: Webhook) -> str:
    if found.disabled is not None:
        return f"disabled: {found.disabled}"
    if found.paused:
        return "paused"
    return f"failing since {found.failing_since}" if found.failing_since is not None else "on"


def _about(found: Webhook) -> str:
    return facts(
        [
            ("webhook", found.id),
            ("address", found.url),
            ("events", " ".join(found.events)),
            ("secret", found.secret),
            ("session", found.session),
            ("template", found.template),
            ("sends", "whole events" if found.content else "what happened where"),
            ("order", "by session" if found.ordered else "none"),
            ("state", _health(found)),
        ]
    )


def _about_call(found: WebhookDelivery) -> str:
    return facts(
        [
            ("call", found.id),
            ("event", found.type),
            ("session", found.session),
            ("state", found.state),
            ("tries", found.tries),
            ("why", found.reason),
            ("next try", found.next_try_at),
        ]
    )
