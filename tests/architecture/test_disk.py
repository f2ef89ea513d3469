"""The server does not touch the disk of a runner, which may be another machine's."""

import ast

from tests.architecture.house import DISK, OWN_DISK, WITHOUT_DISK, modules, tree


def _tools(top: ast.Module) -> set[str]:
    """What a module could touch a disk with."""
    nodes = list(ast.walk(top))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named = [(node.module, alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    inner = {name for module, inner in named for name in (module or "", f"{module}.{inner}")}
    calls = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return (plain | inner | calls) & DISK


def test_only_modules_with_data_of_the_servers_own_can_touch_a_disk() -> None:
    inside = {name: file for name, file in modules().items() if name.startswith(WITHOUT_DISK)}
    assert {name for name, file in inside.items() if _tools(tree(file))} == set(OWN_DISK)
