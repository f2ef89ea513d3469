"""Every test has a lane that there is, and a place of the table is one that there is."""

import ast
from pathlib import Path

from tests.architecture.house import ROOT, tracked_files, tree
from tests.support.lanes import LANES, OPEN, PLACES, lane_of

TESTS = [file for file in tracked_files() if file.is_relative_to(ROOT / "tests") and file.name.startswith("test_")]


def _named_lanes(file: Path) -> set[str]:
    """The words of `pytest.mark.lane(...)` in a file."""
    calls = (node for node in ast.walk(tree(file)) if isinstance(node, ast.Call))
    return {str(ast.literal_eval(call.args[0])) for call in calls if ast.unparse(call.func) == "pytest.mark.lane"}


def test_every_file_of_tests_has_a_lane() -> None:
    lanes = {lane_of(file.relative_to(ROOT).as_posix()) for file in TESTS}
    assert lanes.union({"open"}, *map(_named_lanes, TESTS)) == set(LANES)


def test_every_lane_is_described() -> None:
    text = (ROOT / "tests" / "README.md").read_text()
    assert {lane for lane in LANES if f"\n| `{lane}` |" not in text} == set()


def test_the_table_names_places_that_are_there_and_says_nothing_twice() -> None:
    assert {place for place in PLACES if not (ROOT / place).exists()} == set()
    above = {place: lane_of(str(Path(place).parent)) for place in PLACES if "/" in place}
    assert {place for place, lane in above.items() if lane == PLACES[place]} == set()


def test_a_test_of_another_lane_than_its_file_stands_in_a_file_of_every_run() -> None:
    for file in TESTS:
        named = _named_lanes(file)
        assert named <= set(LANES), file
        assert not named or lane_of(file.relative_to(ROOT).as_posix()) == "fast", file


def test_what_is_open_is_there() -> None:
    for name in OPEN:
        file, _, test = name.partition("::")
        functions = ast.FunctionDef | ast.AsyncFunctionDef
        assert test in {node.name for node in ast.walk(tree(ROOT / file)) if isinstance(node, functions)}
