"""`ostler search`: find what was said in sessions."""

from typing import get_args

import click

from ostler.cli.api import ApiCommand, connect, json_option
from ostler.cli.output import clean, short_ids, show
from ostler.cli.root import Target
from ostler.wire.search import SearchHit, SearchResults, Speaker

_BEHIND = "Some of what was said is not in the index yet; look again in a moment."


@click.command(cls=ApiCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", help="Only in sessions of this agent.")
@click.option("--session", help="Only in this session.")
@click.option("--from", "speaker", type=click.Choice(get_args(Speaker)), help="Only what was said by these.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option(
    "--before", type=click.IntRange(1), metavar="N", help="The next page: the number that the last one names."
)
@json_option
@click.pass_obj
def command(
    target: Target,
    *,
    words: tuple[str, ...],
    agent: str | None,
    session: str | None,
    speaker: Speaker | None,
    limit: int,
    before: int | None,
    as_json: bool,
) -> None:
    """Find what was said in sessions, newest first.

    All words must be there, and the last may be the beginning of one. Put words in double quotes that stand beside each
    other: ostler search '"price list" discount'
    """
    with connect(target) as client:
        found = client.sessions.search(
            " ".join(words), agent=agent, session=session, speaker=speaker, limit=limit, before=before
        )
    show(found, as_json, lambda: _text(found))


def _text(found: SearchResults) -> str:
    ids = short_ids(hit.session_id for hit in found.items)
    lines = [_hit(hit, ids[hit.session_id]) for hit in found.items] or ["Nothing was found."]
    if found.next_before is not None:
        lines.append(f"There is more; next: --before {found.next_before}")
    if not found.is_complete:
        lines.append(_BEHIND)
    return "\n".join(lines)


def _hit(hit: SearchHit, session: str) -> str:
    head = f"{session}  {hit.time[:16].replace('T', ' ')}  {hit.agent}, {hit.speaker}"
    title = f"  {clean(hit.title)}" if hit.title else ""
    return f"{click.style(head, bold=True)}{title}\n    {_marked(hit)}"


def _marked(hit: SearchHit) -> str:
    """The excerpt with what was looked for in colour; without a terminal there are no colours."""
    pieces, last = [], 0
    for start, end in hit.marks:
        pieces += [clean(hit.excerpt[last:start]), click.style(clean(hit.excerpt[start:end]), fg="yellow", bold=True)]
        last = end
    return "".join([*pieces, clean(hit.excerpt[last:])])
