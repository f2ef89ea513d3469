"""Files and functions stay small enough to be read in one go."""

import ast
from collections import Counter
from pathlib import Path
from statistics import median

from tests.architecture.house import (
    LARGE_CLASSES,
    LARGE_FOLDERS,
    LONG_FILES,
    MAX_FILE_LINES,
    MAX_FILES_IN_A_FOLDER,
    MAX_FUNCTION_LINES,
    MAX_MEDIAN_FUNCTION_LINES,
    MAX_METHODS,
    MAX_TEST_FILE_LINES,
    ROOT,
    tracked_files,
    tree,
)

_FILES = [file for file in tracked_files() if file.suffix == ".py"]
_SOURCE = [file for file in _FILES if file.is_relative_to(ROOT / "src")]


def _function_sizes(files: list[Path]) -> dict[str, int]:
    return {
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for file in files
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _above(sizes: dict[str, int], limit: int, exceptions: dict[str, int]) -> dict[str, int]:
    """What is above its limit, and exceptions that are no longer needed."""
    above = {name: size for name, size in sizes.items() if size > exceptions.get(name, limit)}
    needless = {name: sizes.get(name, 0) for name in exceptions if sizes.get(name, 0) <= limit}
    return above | needless


def test_no_file_is_longer_than_the_limit() -> None:
    sizes = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in _FILES}
    source = {name: size for name, size in sizes.items() if name.startswith("src/")}
    assert _above(source, MAX_FILE_LINES, LONG_FILES) == {}
    assert {name: size for name, size in sizes.items() if size > MAX_TEST_FILE_LINES} == {}


def test_no_folder_has_more_files_than_the_limit() -> None:
    sizes = Counter(str(file.parent.relative_to(ROOT)) for file in _SOURCE)
    assert _above(dict(sizes), MAX_FILES_IN_A_FOLDER, LARGE_FOLDERS) == {}


def test_no_class_has_more_methods_than_the_limit() -> None:
    classes = [node for file in _SOURCE for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)]
    sizes: dict[str, int] = {}
    for found in classes:
        methods = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in found.body)
        sizes[found.name] = max(methods, sizes.get(found.name, 0))
    assert _above(sizes, MAX_METHODS, LARGE_CLASSES) == {}


def test_no_function_is_longer_than_the_limit() -> None:
    sizes = _function_sizes(_FILES)
    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def test_the_usual_function_is_short() -> None:
    assert median(_function_sizes(_SOURCE).values()) <= MAX_MEDIAN_FUNCTION_LINES
