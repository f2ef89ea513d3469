"""Programs of others are started at one place: what a start may have is settled there."""

import ast

from tests.architecture.house import HELPERS, STARTS, modules, tree

_CALLS = frozenset(
    {"Popen", "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"}
)
_OF_SUBPROCESS = frozenset({"run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"})
_OF_OS = frozenset({"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"})
_SPAWNS = ("ostler.server.", "ostler.link.", "ostler.agents.", "ostler.base.", "ostler.runner.")
_ROOTS = ("ostler.machine", "ostler.app", "ostler.runner_app", "ostler.stopping")


def _is_start(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in _CALLS
        case ast.Attribute(value=ast.Name(id="subprocess"), attr=name) if name in _OF_SUBPROCESS:
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in _OF_OS or name.startswith(("exec", "spawn")):
            return True
        case ast.Attribute(value=ast.Name(id="Process"), attr="start"):
            return True
        case ast.Attribute(attr=name):
            return name in _CALLS
    return False


def _starts(top: ast.Module) -> bool:
    return any(isinstance(node, ast.Call) and _is_start(node) for node in ast.walk(top))


def test_only_one_folder_starts_programs_of_others() -> None:
    there = {name: file for name, file in modules().items() if name.startswith(_SPAWNS) or name in _ROOTS}
    starting = {name for name, file in there.items() if _starts(tree(file))}
    assert {name for name in starting if not name.startswith(STARTS)} == set(HELPERS)
    assert any(name.startswith(STARTS) for name in starting)
