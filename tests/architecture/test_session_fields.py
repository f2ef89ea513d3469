"""Nobody reaches into a session: its log, its feed and what it was ordered with are its own."""

import ast
from collections.abc import Iterator

from tests.architecture.house import PRIVATE_TO_SESSIONS, READERS_OF_SESSIONS, modules, tree


def _reached_into(top: ast.Module) -> Iterator[ast.Attribute]:
    called = {id(node.func) for node in ast.walk(top) if isinstance(node, ast.Call)}
    for node in ast.walk(top):  # a method of that name, as a projection has, is something else
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE_TO_SESSIONS and id(node) not in called:
            yield node


def test_only_sessions_know_what_a_session_is_made_of() -> None:
    found = {
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, file in modules().items()
        if name.startswith(READERS_OF_SESSIONS)
        for node in _reached_into(tree(file))
    }
    assert found == set()
