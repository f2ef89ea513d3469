"""The table of requirements says what is so: every row is there, and every test it names."""

import ast
import re
from pathlib import Path

from tests.architecture.house import ROOT, tree
from tests.support.lanes import OPEN
from tools.reference.status import SPECIFICATIONS, requirements

FILE = ROOT / "tests" / "requirements.toml"
ROWS = requirements(FILE)
COUNTS = {"S0": 69, "S1": 43, "S2": 48, "S3": 38, "S4": 36}
"""How many requirements each specification has."""

_TEST = re.compile(r"(?P<file>tests/[\w/]+/test_\w+\.py)::(?P<function>test_\w+)(\[(?P<behaviours>[\w.-]+)\])?")


def _functions(file: Path) -> set[str]:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree(file).body if isinstance(node, functions)}


def _is_there(test: str) -> bool:
    named = _TEST.fullmatch(test)
    if named is None or not (ROOT / named["file"]).is_file():
        return False
    behaviours = named["behaviours"]
    beside = behaviours is None or (ROOT / named["file"]).with_name(behaviours).is_file()
    return beside and named["function"] in _functions(ROOT / named["file"])


def test_every_requirement_has_a_row_in_its_place() -> None:
    assert set(COUNTS) == set(SPECIFICATIONS)
    assert list(ROWS) == [f"{name}-{number}" for name, count in COUNTS.items() for number in range(1, count + 1)]


def test_a_title_is_a_line() -> None:
    long = {id_: row.title for id_, row in ROWS.items() if not 0 < len(row.title) <= 80 or "\n" in row.title}
    assert long == {}


def test_every_test_that_is_named_is_there() -> None:
    gone = {id_: [test for test in row.tests if not _is_there(test)] for id_, row in ROWS.items()}
    moved = "A test of tests/requirements.toml moved or is gone: write its new name there, or correct the row's state."
    assert {id_: tests for id_, tests in gone.items() if tests} == {}, moved


def test_a_row_that_is_true_is_shown_by_a_test() -> None:
    shown = {id_: set(row.tests) - OPEN.keys() for id_, row in ROWS.items() if row.state == "true"}
    assert [id_ for id_, tests in shown.items() if not tests] == []


def test_a_row_that_is_not_true_says_what_is_missing() -> None:
    assert [id_ for id_, row in ROWS.items() if row.state != "true" and not row.why.strip()] == []


def test_what_is_missing_has_no_tests_and_no_test_is_named_twice() -> None:
    assert [id_ for id_, row in ROWS.items() if row.state == "missing" and row.tests] == []
    assert [id_ for id_, row in ROWS.items() if len(set(row.tests)) < len(row.tests)] == []


def test_the_open_issues_are_the_rows_that_are_not_true() -> None:
    told = (ROOT / "docs" / "reference" / "open-issues.md").read_text()
    assert re.findall(r"^\| (S\d-\d+) \| ", told, re.MULTILINE) == [
        id_ for state in ("missing", "partly") for id_, row in ROWS.items() if row.state == state
    ]


def test_the_page_tells_every_row() -> None:
    told = (ROOT / "docs" / "reference" / "status.md").read_text()
    assert [id_ for id_, row in ROWS.items() if f"\n| {id_} | " not in told or row.why not in told] == []
