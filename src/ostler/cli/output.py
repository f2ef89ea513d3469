"""Tables and JSON on standard output."""

import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import msgspec

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_SHORT = len("ses_") + 10
"""Of an id, the millisecond in which it was made."""

output_option = click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of the screen."
)


def put(content: bytes, output: Path | None, as_json: bool) -> None:
    """Write bytes to a file, or as they are to the screen; as JSON, as text or else in base64."""
    if output is not None:
        output.write_bytes(content)
        written = {"output": str(output), "size": len(content)}
        show(written, as_json, lambda: f"Wrote {len(content)} bytes to {output}.")
    elif as_json:
        click.echo(json_text({**_contained(content), "size": len(content)}))
    else:
        sys.stdout.buffer.write(content)


def _contained(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def lines_changed(added: int, gone: int) -> str:
    """How many lines came and went."""
    return f"{added} {'line' if added == 1 else 'lines'} added, {gone} removed"


def counted(number: int, noun: str) -> str:
    """How many there are: `1 turn`, `2 turns`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def removed(name: str, as_json: bool, sentence: str) -> None:
    """Tell that something is not there any more."""
    show({"removed": name}, as_json, lambda: sentence)


def show(value: Any, as_json: bool, people: Callable[[], str]) -> None:
    """Print a result as JSON for programs or as text for people."""
    click.echo(json_text(value) if as_json else people())


def json_text(value: Any) -> str:
    """Indented JSON, as the API sent it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def json_line(value: Any) -> str:
    """JSON on one line."""
    return msgspec.json.encode(value).decode()


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> str:
    """Columns as wide as they need to be; one sentence when there is nothing."""
    cells = [[cell(value) for value in row] for row in rows]
    if not cells:
        return empty
    widths = [max(len(text) for text in column) for column in zip(headings, *cells, strict=True)]
    lines = [_aligned(headings, widths), *(_aligned(row, widths) for row in cells)]
    return "\n".join(lines)


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The beginning of each id, as long as it has to be to be the only one of these."""
    whole = sorted(set(ids))
    neighbours = zip(["", *whole], whole, [*whole[1:], ""], strict=False)
    return {
        each: each[: max(_SHORT, 1 + _alike(before, each), 1 + _alike(each, after))]
        for before, each, after in neighbours
    }


def _alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """One name and value per line; what is empty is left out."""
    known = [(name, cell(value)) for name, value in pairs if value not in (None, "", (), {})]
    width = max((len(name) for name, _ in known), default=0)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in known)


def clean(text: str) -> str:
    """Text of an agent without anything that could command the terminal."""
    return _CONTROL.sub("", text)


def cell(value: object) -> str:
    """A value as one line of text."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name}={cell(each)}" for name, each in value.items())
        case tuple() | list():
            return ", ".join(cell(each) for each in value)
        case _:
            return " ".join(clean(str(value)).split())


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
