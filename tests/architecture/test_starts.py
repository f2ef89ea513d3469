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


def _made(name: str, module: str, wanted: str) -> int:
    """How often a module makes one of these structs with what it knows; a default knows nothing."""
    top = tree(modules()[name])
    imported = any(
        isinstance(node, ast.ImportFrom) and node.module == module and wanted in {alias.name for alias in node.names}
        for node in top.body
    )
    calls = [node for node in ast.walk(top) if isinstance(node, ast.Call) and ast.unparse(node.func) == wanted]
    return sum(bool(call.keywords) for call in calls) if imported else 0


def test_only_runtimes_say_what_command_a_start_becomes() -> None:
    """Each way to hold a process takes such a command, so nothing gets around the runtime of its grant."""
    making = {name for name in modules() if _made(name, "ostler.runner.processes.process", "Command")}
    assert making
    assert {name for name in making if not name.startswith("ostler.runner.runtimes.")} == set()


def test_only_the_starter_asks_a_runtime_to_start() -> None:
    asking = {name for name, file in modules().items() if "of_start(" in file.read_text()}
    assert asking == {"ostler.runner.runtimes.registry", "ostler.runner.starting.starter"}


def test_a_grant_is_made_at_one_place_of_the_server() -> None:
    made = {name: _made(name, "ostler.wire.grants", "Grant") for name in modules() if name.startswith("ostler.server.")}
    assert {name: times for name, times in made.items() if times} == {"ostler.server.sessions.creation": 1}
