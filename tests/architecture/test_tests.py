"""The tests have a house too: what they share is in tests/support, and no file is there twice by name."""

import ast
from collections import Counter
from pathlib import Path

from tests.architecture.house import ROOT, tracked_files, tree

_TESTS = ROOT / "tests"
_FILES = [file for file in tracked_files() if file.is_relative_to(_TESTS) and file.suffix == ".py"]
_HELPERS_OF_TESTS: dict[tuple[str, str], str] = {
    ("tests.chaos", "tests.architecture.house"): "the failpoints are found where the code names them",
}
"""(folder, module of another folder) -> why; this list only shrinks."""


def _imported(file: Path) -> set[str]:
    nodes = [node for node in ast.walk(tree(file)) if isinstance(node, ast.ImportFrom) and node.module]
    return {node.module or "" for node in nodes if (node.module or "").startswith("tests.")}


def _folder(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).parts[:2])


def test_a_test_imports_helpers_of_its_own_folder_and_of_support_only() -> None:
    found = {
        (_folder(file), module)
        for file in _FILES
        for module in _imported(file)
        if not module.startswith((_folder(file), "tests.support"))
    }
    assert found == set(_HELPERS_OF_TESTS)


def test_no_file_is_there_twice_by_name() -> None:
    names = Counter(file.name for file in _FILES if file.name != "conftest.py")
    assert {name for name, count in names.items() if count > 1} == set()


def test_all_helpers_are_in_a_folder() -> None:
    assert [file.name for file in _TESTS.glob("*.py")] == ["conftest.py"]
