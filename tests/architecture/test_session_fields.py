"""A session is made of parts, and nobody reaches into it: its log, feed and what it was ordered with are its own."""

import ast
from collections.abc import Iterator

from tests.architecture.house import PRIVATE_TO_SESSIONS, READERS_OF_SESSIONS, modules, tree


def _reached_into(top: ast.Module) -> Iterator[ast.Attribute]:
    called = {id(node.func) for node in ast.walk(top) if isinstance(node, ast.Call)}
    for node in ast.walk(top):  # a method of that name, as a projection has, is something else
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE_TO_SESSIONS and id(node) not in called:
            yield node


def _taken_over(top: ast.Module) -> Iterator[str]:
    """The classes that go on with a class of ours from another file."""
    ours = {
        alias.asname or alias.name
        for node in top.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ostler.server")
        for alias in node.names
    }
    for node in top.body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base) in ours for base in node.bases):
            yield node.name


def test_a_session_is_made_of_parts_and_not_of_ancestors() -> None:
    found = {
        f"{name} {child}"
        for name, file in modules().items()
        if name.startswith("ostler.server.sessions")
        for child in _taken_over(tree(file))
    }
    assert found == set()


def test_only_sessions_know_what_a_session_is_made_of() -> None:
    found = {
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, file in modules().items()
        if name.startswith(READERS_OF_SESSIONS)
        for node in _reached_into(tree(file))
    }
    assert found == set()
