"""A session is made of parts, and nobody reaches into it: its log, feed and what it was ordered with are its own."""

import ast
from collections.abc import Iterator

from tests.architecture.house import PRIVATE_TO_SESSIONS, READERS_OF_SESSIONS, modules, tree

_OF_SESSIONS = frozenset({"live", "core", "session", "sessions", "registry", "runners", "log"})
"""What a session, and what has all of them, is called where somebody holds one."""


def _own_fields(top: ast.Module) -> frozenset[str]:
    """The fields of the classes of a file: those that they name, and those that they set."""
    named = {
        part.target.id
        for node in ast.walk(top)
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }
    return frozenset(named | {node.attr for node in _set(top) if ast.unparse(node.value) == "self"})


def _set(top: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(top):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node


def _set_elsewhere(name: str, top: ast.Module) -> Iterator[ast.Attribute]:
    """The fields that are set of something whose class is in another file, as far as it has to do with sessions."""
    own = _own_fields(top)
    for node in _set(top):
        holder = ast.unparse(node.value)
        is_inside = name.startswith("ostler.server.sessions.") and holder != "draft"  # those are messages
        if holder != "self" and node.attr not in own and (is_inside or _OF_SESSIONS & set(holder.split("."))):
            yield node


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


def test_no_field_of_a_session_is_set_from_another_file() -> None:
    found = {
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, file in modules().items()
        if name.startswith("ostler.server.")
        for node in _set_elsewhere(name, tree(file))
    }
    assert found == set()
