"""`ostler database`: where a server keeps what it remembers."""

import asyncio

import click

from ostler.cli.api import json_option
from ostler.cli.output import show, table


@click.group()
def command() -> None:
    """Move what a server remembers to another database."""


@command.command()
@click.argument("source")
@click.argument("target")
@json_option
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy a store, and compare every row.

    SOURCE and TARGET are state folders or addresses like postgresql://user:password@host/name. No server may run on
    either of them. TARGET must be empty; if anything fails it stays so. Files of agents and workspaces are not copied:
    go on with the same --state-dir.
    """
    from ostler.server.store.copying import copy_store  # noqa: PLC0415 - no server may run meanwhile

    counted: list[tuple[str, str]] = []
    asyncio.run(copy_store(source, target, lambda name, rows: counted.append((name, str(rows)))))
    rows = {name: int(count) for name, count in counted}
    text = f"{table(('TABLE', 'ROWS'), counted, '')}\nCopied, and the same row by row."
    show({"source": source, "target": target, "rows": rows}, as_json, lambda: text)
