"""`ostler triggers`: events from outside that become tasks or prompts."""

from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from ostler.cli.api import Noun, connect, json_option, pairs
from ostler.cli.output import facts, removed, show, table
from ostler.cli.root import Target
from ostler.wire.triggers import Delivery, Mapping, NewSignature, SessionPolicy, SignatureScheme, Trigger

_EMPTY = "There are no triggers. Make one: ostler triggers create issues --template NAME --scheme github"
_name = click.argument("name")
_delivery_id = click.argument("delivery")


def _as_json(_ctx: click.Context, _option: click.Parameter, given: str | None) -> Any:
    """JSON, or @ and the file that has it."""
    if given is None:
        return None
    try:
        return msgspec.json.decode(Path(given[1:]).read_bytes() if given.startswith("@") else given)
    except OSError as error:
        raise click.BadParameter(f"{given[1:]} cannot be read ({error.strerror}).") from error
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"is no JSON ({error}). Give JSON, or @ and the name of a file.") from error


_OPTIONS = (
    click.option("--template", metavar="NAME[@TAG]", help="What is begun."),
    click.option("--filter", callback=_as_json, metavar="JSON", help="Which events; @FILE for a file."),
    click.option("--prompt", metavar="LIQUID", help="What the agent is told; else the template's prompt."),
    click.option("--input", "inputs", multiple=True, callback=pairs, metavar="NAME=LIQUID", help="For a variable."),
    click.option("--key", metavar="LIQUID", help="Which session an event goes to, with --sessions mapped."),
    click.option("--sessions", "session_policy", type=click.Choice(get_args(SessionPolicy)), help="Where events go."),
    click.option("--session", metavar="ID", help="The session, with --sessions fixed."),
    click.option("--per-minute", type=click.IntRange(min=0), help="Act on so many at most, later on more; 0: on all."),
    click.option("--allow-bots/--no-bots", default=None, help="Take events that bots and edits cause too."),
)


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _chosen(given: dict[str, Any], before: Mapping | None = None) -> dict[str, Any]:
    """The options that were given, those of the mapping put together."""
    texts = {name: given.pop(name) for name in ("prompt", "inputs", "key")}
    chosen_texts = {name: value for name, value in texts.items() if value}
    chosen = {name: value for name, value in given.items() if value is not None}
    return (
        {**chosen, "mapping": msgspec.structs.replace(before or Mapping(), **chosen_texts)} if chosen_texts else chosen
    )


@click.group(cls=Noun)
def command() -> None:
    """Let events from outside begin work."""


@command.command("list")
@json_option
@click.pass_obj
def list_(target: Target, as_json: bool) -> None:
    """List the triggers."""
    with connect(target) as client:
        found = client.triggers.list()
    rows = [
        (each.name, each.scheme, each.template or each.session, "paused" if each.paused else each.path)
        for each in found.items
    ]
    show(found, as_json, lambda: table(("TRIGGER", "SCHEME", "BEGINS", "DOOR"), rows, _EMPTY))


@command.command()
@_name
@click.option("--scheme", type=click.Choice(get_args(SignatureScheme)), default="token", help="How senders sign.")
@click.option("--secret", metavar="SECRET", help="What they sign with; else the server makes it and shows it once.")
@click.option("--header", metavar="NAME", help="Where the token is, if it is not Authorization: Bearer.")
@_options
@click.option("--paused", is_flag=True, help="Begin nothing yet.")
@json_option
@click.pass_obj
def create(target: Target, /, name: str, as_json: bool, **given: Any) -> None:
    """Let events from outside begin tasks of a template, or prompts."""
    chosen = _chosen(given)
    with connect(target) as client:
        made = client.triggers.create(name, **chosen)
    show(made, as_json, lambda: _about(made))


@command.command("show")
@_name
@json_option
@click.pass_obj
def show_(target: Target, name: str, as_json: bool) -> None:
    """Show a trigger and where senders post to."""
    with connect(target) as client:
        found = client.triggers.show(name)
    show(found, as_json, lambda: _about(found))


@command.command()
@_name
@click.option("--secret", metavar="SECRET", help="A new secret; the old one is good no more.")
@_options
@click.option("--pause/--resume", "paused", default=None, help="Begin nothing, or go on.")
@json_option
@click.pass_obj
def edit(target: Target, /, name: str, secret: str | None, as_json: bool, **given: Any) -> None:
    """Change a trigger; what is not given stays."""
    with connect(target) as client:
        before = client.triggers.show(name)
        chosen = _chosen(given, before.mapping)
        if secret is not None:
            chosen["signature"] = NewSignature(scheme=before.scheme, header=before.header, secret=secret)
        changed = client.triggers.edit(name, **chosen)
    show(changed, as_json, lambda: _about(changed))


@command.command()
@_name
@json_option
@click.pass_obj
def deliveries(target: Target, name: str, as_json: bool) -> None:
    """List the last deliveries and what became of each."""
    with connect(target) as client:
        found = client.triggers.deliveries(name)
    rows = [(each.id, each.received_at, each.state, each.session, _why(each)) for each in found.items]
    show(found, as_json, lambda: table(("DELIVERY", "CAME", "STATE", "SESSION", "WHY"), rows, "Nothing has come yet."))


@command.command()
@_name
@_delivery_id
@json_option
@click.pass_obj
def delivery(target: Target, name: str, delivery: str, as_json: bool) -> None:
    """Show a delivery with what was sent."""
    with connect(target) as client:
        found = client.triggers.delivery(name, delivery)
    event = msgspec.json.format(msgspec.json.encode(found.event)).decode()
    show(found, as_json, lambda: f"{_delivered(found)}\n{event}")


@command.command()
@_name
@_delivery_id
@json_option
@click.pass_obj
def replay(target: Target, name: str, delivery: str, as_json: bool) -> None:
    """Act on a delivery once more, as the trigger is now."""
    with connect(target) as client:
        taken = client.triggers.replay(name, delivery)
    show(taken, as_json, lambda: _delivered(taken))


@command.command("test")
@_name
@click.option("--event", required=True, callback=_as_json, metavar="JSON", help="What would be sent; @FILE for a file.")
@click.option("--header", "headers", multiple=True, callback=pairs, metavar="NAME=VALUE", help="With these headers.")
@json_option
@click.pass_obj
def test_(target: Target, name: str, event: dict[str, Any], headers: dict[str, str], as_json: bool) -> None:
    """Take an event as if a sender had signed it."""
    with connect(target) as client:
        taken = client.triggers.test(name, event, headers=headers)
    show(taken, as_json, lambda: _delivered(taken))


@command.command()
@_name
@click.option("--event", callback=_as_json, metavar="JSON", help="What would be sent; @FILE for a file.")
@click.option("--delivery", metavar="ID", help="A delivery that came, instead.")
@click.option("--filter", callback=_as_json, metavar="JSON", help="A filter to try instead of the trigger's.")
@click.option("--prompt", metavar="LIQUID", help="A prompt to try instead of the trigger's.")
@json_option
@click.pass_obj
def preview(
    target: Target, /, name: str, event: Any, delivery: str | None, prompt: str | None, as_json: bool, **given: Any
) -> None:
    """Show what would become of an event; nothing is begun."""
    with connect(target) as client:
        mapping = client.triggers.show(name).mapping if prompt is not None else None
        tried = None if mapping is None else msgspec.structs.replace(mapping, prompt=prompt)
        found = client.triggers.preview(name, event=event, delivery=delivery, mapping=tried, filter=given["filter"])
    about = facts([("state", found.state), ("why", found.reason), ("key", found.key), ("inputs", found.inputs)])
    show(found, as_json, lambda: f"{about}\n{found.prompt}" if found.prompt else about)


@command.command()
@_name
@json_option
@click.pass_obj
def remove(target: Target, name: str, as_json: bool) -> None:
    """Forget a trigger with its deliveries; sessions that it began go on."""
    with connect(target) as client:
        client.triggers.remove(name)
    removed(name, as_json, f"Removed the trigger '{name}'.")


def _about(found: Trigger) -> str:
    return facts(
        [
            ("trigger", found.name),
            ("door", found.path),
            ("scheme", found.scheme),
            ("secret", found.secret),
            ("template", found.template),
            ("sessions", found.session_policy),
            ("session", found.session),
            ("filter", msgspec.json.encode(found.filter).decode() if found.filter else None),
            ("prompt", found.mapping.prompt),
            ("inputs", found.mapping.inputs),
            ("key", found.mapping.key),
            ("bots", "yes" if found.allow_bots else None),
            ("per minute", found.per_minute or None),
            ("paused", "yes" if found.paused else None),
        ]
    )


def _why(found: Delivery) -> str | None:
    return found.reason or (f"begins at {found.begins_at}" if found.begins_at else None)


def _delivered(found: Delivery) -> str:
    return facts([("delivery", found.id), ("state", found.state), ("session", found.session), ("why", _why(found))])
