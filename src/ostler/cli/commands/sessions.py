"""`ostler sessions`: conversations with agents."""

from pathlib import Path
from typing import Any, get_args

import click

from ostler.cli.api import Noun, connect, json_option, pairs
from ostler.cli.commands import imports, search
from ostler.cli.commands.changes import COMMANDS
from ostler.cli.options import inputs_of, prompt_text, session_arguments, session_options, template_options
from ostler.cli.output import cell, counted, facts, lines_changed, removed, short_ids, show, table
from ostler.cli.root import Target
from ostler.cli.terminal.text import limit_gist
from ostler.cli.terminal.transcript import transcript
from ostler.wire.events import PermissionMode
from ostler.wire.parts import FileInput, ImageInput, InputPart, TextInput
from ostler.wire.sessions import PromptReceipt, Session, SessionChanges, UsageView, WhenBusy


@click.group(cls=Noun)
def command() -> None:
    """Create, steer and end sessions."""


@command.command("list")
@click.option("--status", help="Only sessions with this status.")
@click.option("--agent", help="Only sessions of this agent.")
@click.option("--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Only with this label.")
@click.option("--search", help="Only sessions whose title or key contains this.")
@click.option("--page", type=click.IntRange(1), default=1, show_default=True)
@click.option("--per-page", type=click.IntRange(1), default=20, show_default=True)
@json_option
@click.pass_obj
def list_sessions(
    target: Target,
    *,
    status: str | None,
    agent: str | None,
    labels: dict[str, str],
    search: str | None,
    page: int,
    per_page: int,
    as_json: bool,
) -> None:
    """List sessions, newest first."""
    with connect(target) as client:
        found = client.sessions.list(status=status, agent=agent, labels=labels, q=search, page=page, per_page=per_page)
    ids = short_ids(each.id for each in found.items)
    rows = [
        (ids[each.id], "" if each.key == each.id else each.key, each.agent.type, each.status, _doing(each), each.title)
        for each in found.items
    ]
    text = table(("SESSION", "KEY", "AGENT", "STATUS", "ACTIVITY", "TITLE"), rows, "No sessions.")
    more = f"\n{found.total} in all; next: --page {found.next_page}" if found.next_page else ""
    show(found, as_json, lambda: text + more)


command.add_command(search.command, "search")
command.add_command(imports.importable)
command.add_command(imports.bring)


@command.command()
@click.argument("agent", default="")
@template_options
@session_options
@json_option
@click.pass_obj
def create(
    target: Target, /, agent: str, template: str | None, inputs: dict[str, str], as_json: bool, **given: Any
) -> None:
    """Create a session with AGENT, or with the agent of a template."""
    if not agent and template is None:
        raise click.UsageError("Say which AGENT, or a --template that names one")
    with connect(target) as client:
        values = inputs_of(client, template, inputs)
        made = client.sessions.create(agent, template=template, inputs=values, **session_arguments(given))
    session = made.info
    show(session, as_json, lambda: session.id)


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def get(target: Target, session: str, as_json: bool) -> None:
    """Show one session."""
    with connect(target) as client:
        found = client.sessions.get(session)
    show(found, as_json, lambda: _session_text(found))


@command.command()
@click.argument("session")
@click.option("--model", help="From the next turn on, as the three below.")
@click.option("--variant", help="How hard the model thinks.")
@click.option("--mode", help="A mode of the agent.")
@click.option("--permission-mode", type=click.Choice(get_args(PermissionMode)), help="What the agent may do.")
@click.option("--title")
@click.option("--label", "labels", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Replaces all labels.")
@click.option("--pin/--unpin", "pinned", default=None, help="Have it before all others.")
@click.option("--archive/--unarchive", "archived", default=None, help="Have it out of the way.")
@json_option
@click.pass_obj
def update(target: Target, /, session: str, as_json: bool, **given: Any) -> None:
    """Change how the agent works, or how the session is listed."""
    if not any(value not in (None, {}) for value in given.values()):
        raise click.UsageError("Nothing to change. Say what, for example --title or --model.")
    given["labels"] = given["labels"] or None
    with connect(target) as client:
        changed = client.sessions.update(session, **given)
    show(changed, as_json, lambda: _session_text(changed))


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def delete(target: Target, session: str, as_json: bool) -> None:
    """End a session and remove everything of it."""
    with connect(target) as client:
        client.sessions.delete(session)
    removed(session, as_json, f"Deleted {session}.")


@command.command()
@json_option
@click.pass_obj
def reads(target: Target, as_json: bool) -> None:
    """List which sessions you have seen, on whatever device."""
    with connect(target) as client:
        found = client.sessions.reads()
    ids = short_ids(each.session_id for each in found.items)
    rows = [(ids[each.session_id], each.turns, "failed" if each.failed else "", each.read_at) for each in found.items]
    show(found, as_json, lambda: table(("SESSION", "TURNS", "", "SEEN"), rows, f"None since {found.since}."))


@command.command("mark-read")
@click.argument("session")
@click.option("--turns", type=click.IntRange(0), help="Only its first turns; by default all that there are now.")
@json_option
@click.pass_obj
def mark_read(target: Target, session: str, turns: int | None, as_json: bool) -> None:
    """Say that you have seen a session; it is no longer new in the page, on any device."""
    with connect(target) as client:
        found = client.sessions.mark_read(session, turns=turns)
    show(found, as_json, lambda: f"{found.session_id} is seen.")


def _add_verb(name: str, about: str) -> None:
    """A command that changes a session's status and says what it became."""

    @command.command(name, help=about)
    @click.argument("session")
    @json_option
    @click.pass_obj
    def run(target: Target, session: str, as_json: bool) -> None:
        with connect(target) as client:
            changed: Session = getattr(client.sessions, name)(session)
            show(changed, as_json, lambda: f"{changed.id} is {changed.status}.")


_add_verb("stop", "End a session gracefully.")
_add_verb("cancel", "End a session by force.")
_add_verb("pause", "Freeze the agent where it stands.")
_add_verb("resume", "Let a paused agent go on.")


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def interrupt(target: Target, session: str, as_json: bool) -> None:
    """End the running turn, or the waiting for a limit; the session goes on."""
    with connect(target) as client:
        done = client.sessions.interrupt(session)
    ended = "Interrupted." if done.turn_id is not None else "It does not wait any longer."
    show(done, as_json, lambda: ended if done.interrupted else "No turn was running.")


@command.command("go-on")
@click.argument("session")
@json_option
@click.pass_obj
def go_on(target: Target, session: str, as_json: bool) -> None:
    """Go on now with a session that waits for the end of a limit."""
    with connect(target) as client:
        found = client.sessions.go_on(session)
    show(found, as_json, lambda: f"{found.id} goes on.")


@command.command()
@click.argument("session")
@click.option("--force", is_flag=True, help="Also end a turn that is under way.")
@json_option
@click.pass_obj
def restart(target: Target, session: str, force: bool, as_json: bool) -> None:
    """End the agent's process; the next turn begins a new one with its memory."""
    with connect(target) as client:
        found = client.sessions.restart(session, force=force)
    show(found, as_json, lambda: f"The agent of {found.id} begins anew with the next turn, and remembers.")


@command.command()
@click.argument("session")
@click.argument("message")
@click.option("--image", "images", multiple=True, metavar="PATH", help="An image on the runner's machine.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file on the runner's machine.")
@click.option(
    "--when-busy",
    type=click.Choice(["queue", "steer", "interrupt", "reject"]),
    default="queue",
    show_default=True,
    help="What to do if a turn is under way.",
)
@json_option
@click.pass_obj
def send(
    target: Target,
    *,
    session: str,
    message: str,
    images: tuple[str, ...],
    files: tuple[str, ...],
    when_busy: WhenBusy,
    as_json: bool,
) -> None:
    """Send a prompt; `-` reads it from standard input."""
    parts: list[InputPart] = [TextInput(text=prompt_text(message))]
    parts += [ImageInput(path=str(Path(path).absolute())) for path in images]
    parts += [FileInput(path=str(Path(path).absolute())) for path in files]
    with connect(target) as client:
        receipt = client.sessions.send(session, parts, when_busy=when_busy)
    show(receipt, as_json, lambda: _receipt_text(receipt))


@command.command()
@click.argument("session")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="Messages to skip.")
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True)
@json_option
@click.pass_obj
def messages(target: Target, session: str, offset: int, limit: int, as_json: bool) -> None:
    """Show the transcript."""
    with connect(target) as client:
        found = client.sessions.messages(session, offset=offset, limit=limit)
    more = f"\nMore with --offset {offset + len(found.messages)}." if found.has_more else ""
    show(found, as_json, lambda: (transcript(found.messages) or "No messages yet.") + more)


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def queue(target: Target, session: str, as_json: bool) -> None:
    """List the prompts that wait."""
    with connect(target) as client:
        found = client.sessions.queue(session)
    rows = [
        (each.prompt_id, each.queued_at, [getattr(part, "text", part.type) for part in each.parts])
        for each in found.entries
    ]
    show(found, as_json, lambda: table(("PROMPT", "SINCE", "TEXT"), rows, "No prompts wait."))


@command.command()
@click.argument("session")
@click.argument("prompt_id")
@json_option
@click.pass_obj
def unqueue(target: Target, session: str, prompt_id: str, as_json: bool) -> None:
    """Take one waiting prompt back."""
    with connect(target) as client:
        client.sessions.unqueue(session, prompt_id)
    removed(prompt_id, as_json, f"Removed {prompt_id}.")


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def clear_queue(target: Target, session: str, as_json: bool) -> None:
    """Take all waiting prompts back."""
    with connect(target) as client:
        client.sessions.clear_queue(session)
        found = client.sessions.queue(session)
    show(found, as_json, lambda: "The queue is empty.")


@command.command()
@click.argument("session")
@json_option
@click.pass_obj
def turns(target: Target, session: str, as_json: bool) -> None:
    """List the turns."""
    with connect(target) as client:
        found = client.sessions.turns(session)
    rows = [
        (turn.number, turn.turn_id, turn.outcome or "running", turn.started_at, turn.ended_at) for turn in found.turns
    ]
    show(found, as_json, lambda: table(("TURN", "ID", "OUTCOME", "STARTED", "ENDED"), rows, "No turns yet."))


for _each in COMMANDS:
    command.add_command(_each)


def _receipt_text(receipt: PromptReceipt) -> str:
    where = f" at position {receipt.position}" if receipt.position else ""
    return f"{receipt.prompt_id} {receipt.disposition}{where}" + (f" as {receipt.turn_id}" if receipt.turn_id else "")


def _doing(session: Session) -> str:
    return limit_gist(session.limited_until, session.waits_for_limit) if session.limited_until else session.activity


def _session_text(session: Session) -> str:
    names = ("id", "key", "title", "status", "activity", "permission_mode", "model", "variant", "mode", "cwd")
    known = [(name, getattr(session, name)) for name in names]
    known.insert(3, ("agent", session.agent.type))
    turns = session.turn_count - session.turns_left_behind
    numbers = (turns, "turn"), (session.last_sequence, "event"), (session.queue_length, "waiting prompt")
    counts = ", ".join(counted(number, noun) for number, noun in numbers)
    times = f"{session.created_at}, changed {session.updated_at}"
    asks = f"{session.open_asks} open" if session.open_asks else None
    rest = [
        ("instructions", session.instructions),
        ("env", cell(session.env_names)),
        ("labels", session.labels),
        ("asks", asks),
        ("error", session.error),
        (
            "last turn",
            cell((session.last_turn_outcome, session.last_turn_reason)) if session.last_turn_outcome else None,
        ),
        ("limit", _doing(session) if session.limited_until else None),
    ]
    sums = [("holds", counts), ("used", _usage_text(session.usage)), ("changed", _changes_text(session.changes))]
    return facts([*known, *rest, *sums, ("created", times), ("ended", session.ended_at)])


def _usage_text(usage: UsageView | None) -> str | None:
    if usage is None:
        return None
    cost = [f"{amount:g} {currency}" for currency, amount in usage.cost.items()]
    return ", ".join([f"{usage.input_tokens} tokens in", f"{usage.output_tokens} tokens out", *cost])


def _changes_text(changes: SessionChanges | None) -> str | None:
    if changes is None:
        return None
    files = "1 file" if changes.files == 1 else f"{changes.files} files"
    return f"{files}, {lines_changed(changes.added, changes.removed)}"
