"""Imports go down the house, never in circles, and each module can be imported alone."""

import graphlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.house import (
    EXCEPTIONS,
    FLOORS,
    HIDDEN,
    LATE_IMPORTS,
    LAYERS,
    SOURCE,
    SQL,
    STANDALONE,
    STOREYS,
    foreign_imports,
    imports,
    modules,
    part_of,
)

_IMPORT_EACH = Path(__file__).with_name("programs") / "import_each.py"


def _crossings(module: str, *, late: bool) -> set[tuple[str, str]]:
    """The imports of a module that its part of the house does not allow."""
    part = part_of(module)
    allowed = {"", part, *LAYERS[part]}
    return {(module, name) for name in imports(module, late=late) if part_of(name) not in allowed}


def _circle(graph: dict[str, frozenset[str]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {part_of(module) for module in modules()} - {""} <= set(LAYERS)


@pytest.mark.parametrize("module", [name for name in modules() if part_of(name)])
def test_a_module_imports_only_the_layers_below_it(module: str) -> None:
    assert _crossings(module, late=False) - set(EXCEPTIONS) == set()
    assert _crossings(module, late=True) - set(EXCEPTIONS) - set(LATE_IMPORTS) == set()


def test_every_folder_of_the_runner_and_the_server_has_a_floor() -> None:
    packages = {name for name, file in modules().items() if file.name == "__init__.py" and name.count(".") == 2}
    assert {name for name in packages if name.startswith(("ostler.runner.", "ostler.server."))} == set(FLOORS)


@pytest.mark.parametrize("folder", FLOORS)
def test_a_folder_imports_only_the_floors_below_it(folder: str) -> None:
    inside = [name for name in modules() if f"{name}.".startswith(f"{folder}.")]
    imported = {found for name in inside for found in imports(name, late=False) | imports(name, late=True)}
    floors = {floor for floor in FLOORS for found in imported if f"{found}.".startswith(f"{floor}.")}
    assert floors - {folder, *FLOORS[folder]} == set()


def _storey(module: str) -> int:
    inside = f"{module.removeprefix('ostler.server.sessions').removeprefix('.')}."
    named = [
        (len(name), floor) for floor, names in enumerate(STOREYS) for name in names if inside.startswith(f"{name}.")
    ]
    return max(named)[1]


def test_a_module_of_sessions_imports_only_its_own_storey_and_those_below() -> None:
    folder = "ostler.server.sessions"
    inside = [name for name in modules() if name.startswith(f"{folder}.")]
    upwards = {
        (name, found)
        for name in inside
        for found in imports(name, late=False) | imports(name, late=True)
        if found.startswith(f"{folder}.") and _storey(found) > _storey(name)
    }
    assert upwards == set()


def test_a_module_that_is_imported_by_its_name_is_seen() -> None:
    assert "ostler.client.async_http" in imports("ostler.client.aio", late=True)


@pytest.mark.parametrize("folder", HIDDEN)
def test_a_hidden_folder_is_imported_only_by_who_may(folder: str) -> None:
    outside = [name for name in modules() if not f"{name}.".startswith(f"{folder}.")]
    importing = {
        name
        for name in outside
        for found in imports(name, late=False) | imports(name, late=True)
        if f"{found}.".startswith(f"{folder}.")
    }
    allowed = tuple(f"{name}." for name in HIDDEN[folder])
    assert {name for name in importing if not f"{name}.".startswith(allowed)} == set()


def test_sql_has_its_place() -> None:
    drivers = {"sqlite3", "asyncpg"}
    assert {name for name in modules() if drivers & foreign_imports(name) and not name.startswith(SQL)} == set()


def test_every_exception_is_still_needed() -> None:
    at_the_top = {crossing for name in modules() if part_of(name) for crossing in _crossings(name, late=False)}
    inside = {crossing for name in modules() if part_of(name) for crossing in _crossings(name, late=True)}
    assert set(EXCEPTIONS) - at_the_top == set()
    assert set(LATE_IMPORTS) - inside == set()


def test_the_package_itself_imports_nothing() -> None:
    assert foreign_imports("ostler") == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imports(name, late=False) - {name} for name in modules()}
    assert _circle(graph) == []


@pytest.mark.parametrize("module", [name for name in modules() if name.startswith(STANDALONE)])
def test_a_program_started_on_its_own_needs_only_the_standard_library(module: str) -> None:
    ours = imports(module, late=False) | imports(module, late=True)
    assert {name for name in ours if not name.startswith(STANDALONE)} == set()
    assert foreign_imports(module) - {"ostler"} - sys.stdlib_module_names == set()


@pytest.mark.lane("server")  # a minute, and the fast lane sees circles at the top
def test_each_module_can_be_imported_alone() -> None:
    names = [name for name in modules() if part_of(name) != "__main__"]
    told = json.dumps({name: sorted(imports(name, late=False) - {name}) for name in names})
    command = [sys.executable, str(_IMPORT_EACH)]
    done = subprocess.run(command, input=told, cwd=SOURCE, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], done.stderr
