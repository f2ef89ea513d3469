"""The pages about the requirements: what holds, which tests show it, and what is open."""

from collections import Counter
from pathlib import Path
from typing import Literal, get_args

import msgspec

from tools.reference.markdown import page, table

State = Literal["true", "partly", "missing"]
STATES: tuple[State, ...] = get_args(State)
SPECIFICATIONS = {
    "S0": "Chat",
    "S1": "Executions",
    "S2": "Pi and universal events",
    "S3": "Daemon API",
    "S4": "Tasks and fleets",
}
"""The specifications by the beginning of their rows."""

_INTRODUCTION = """
What Ostler was built to do, as {all} requirements of five specifications, and how far each of them is. A row that is
*true* is shown by a test; one that is *partly* so, or *missing*, says what is missing: these rows are the
[open issues](open-issues.md).

The rows stand in [tests/requirements.toml](../../tests/requirements.toml). Tests hold them: what is named there exists,
and nothing is true without a test.
"""


_OPEN = """
What is not as the requirements want it: {missing} of {all} are missing, and {partly} hold in part. The
[status](status.md) has all of them, with the tests that show what holds. What one agent cannot do is on its
[page](../agents/matrix.md).
"""


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row."""

    title: str
    state: State
    why: str = ""
    """What is missing, or what took the place of the row."""
    tests: tuple[str, ...]
    """Names of tests, as pytest gives them."""


def requirements(file: Path) -> dict[str, Requirement]:
    """All rows by their ids."""
    return msgspec.toml.decode(file.read_text(), type=dict[str, Requirement])


def status_page(rows: dict[str, Requirement]) -> str:
    """The reference of all requirements."""
    parts = {name: {id_: row for id_, row in rows.items() if id_.startswith(f"{name}-")} for name in SPECIFICATIONS}
    sections = [text for name, part in parts.items() for text in (f"## {_heading(name)}", _table(part))]
    return page("Status", _INTRODUCTION.format(all=len(rows)), _counts(parts), *sections)


def open_page(rows: dict[str, Requirement]) -> str:
    """What is missing, and what holds in part."""
    found = {state: {id_: row for id_, row in rows.items() if row.state == state} for state in ("missing", "partly")}
    counts = {state: len(part) for state, part in found.items()}
    columns = ("id", "requirement", "what is missing")
    tables = {
        state: table(columns, [(id_, row.title, row.why) for id_, row in part.items()]) for state, part in found.items()
    }
    words = {"missing": "## Missing", "partly": "## In part"}
    sections = [text for state, rows_ in tables.items() if counts[state] for text in (words[state], rows_)]
    return page("Open issues", _OPEN.format(all=len(rows), **counts), *sections)


def _heading(name: str) -> str:
    return f"{name} {SPECIFICATIONS[name]}"


def _counts(parts: dict[str, dict[str, Requirement]]) -> str:
    counted = {_heading(name): Counter(row.state for row in part.values()) for name, part in parts.items()}
    counted["all"] = sum(counted.values(), Counter())
    cells = [(name, *(str(count[state]) for state in STATES), str(count.total())) for name, count in counted.items()]
    return table(("specification", *STATES, "all"), cells)


def _table(part: dict[str, Requirement]) -> str:
    rows = [(id_, row.title, _shown(row.state), row.why, _files(row.tests)) for id_, row in part.items()]
    return table(("id", "requirement", "state", "why", "tests"), rows)


def _shown(state: State) -> str:
    return state if state == "true" else f"**{state}**"


def _files(tests: tuple[str, ...]) -> str:
    """The files of these tests, each once."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    return ", ".join(f"[{Path(file).stem.removeprefix('test_')}](../../{file})" for file in files)
