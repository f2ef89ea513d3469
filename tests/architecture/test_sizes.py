"""Functions stay small enough to be read in one go."""

import ast
from pathlib import Path
from statistics import median

from tests.architecture.house import (
    MAX_FUNCTION_LINES,
    MAX_MEDIAN_FUNCTION_LINES,
    MAX_METHODS,
    ROOT,
    methods,
    modules,
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


def test_no_function_is_longer_than_the_limit() -> None:
    sizes = _function_sizes(_FILES)
    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def test_the_usual_function_is_short() -> None:
    assert median(_function_sizes(_SOURCE).values()) <= MAX_MEDIAN_FUNCTION_LINES


def test_no_class_has_more_methods_than_the_limit_with_those_of_its_bases() -> None:
    sizes = {
        f"{module} {node.name}": len(methods(module, node.name))
        for module, file in modules().items()
        for node in tree(file).body
        if isinstance(node, ast.ClassDef)
    }
    assert {name: size for name, size in sizes.items() if size > MAX_METHODS} == {}


def test_methods_of_bases_in_other_files_are_counted() -> None:
    end = methods("ostler.link.peer", "Remote")
    assert methods("ostler.link.remote", "RemoteRunner") > end > set()
