"""Code says what it is."""

import ast
from pathlib import Path

from tests.architecture.house import SOURCE, tracked_files, tree

_SAYING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _described(file: Path) -> list[bool]:
    nodes = [node for node in ast.walk(tree(file)) if isinstance(node, _SAYING)]
    return [ast.get_docstring(node) is not None for node in nodes]


def test_most_of_the_code_says_what_it_is() -> None:
    files = [file for file in tracked_files() if file.is_relative_to(SOURCE) and file.suffix == ".py"]
    found = [described for file in files for described in _described(file)]
    assert sum(found) / len(found) >= 0.6
