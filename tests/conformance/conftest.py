"""Installs the suite's agents before its first test, so that no test's time limit counts for it."""

import sys

import pytest

from tests.conformance.driver import Row
from tests.conformance.programs import Search, cached_agents

_SEARCH = pytest.StashKey[Search]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the agents of the tests that were selected."""
    items = [item for item in session.items if isinstance(item, pytest.Function) and "search" in item.fixturenames]
    if session.config.option.collectonly or not items:
        return
    adapters = {row.adapter.info.id: row.adapter for row in map(_row, items)}
    capture = session.config.pluginmanager.getplugin("capturemanager")
    session.config.stash[_SEARCH] = search = cached_agents()
    with capture.global_and_fixture_disabled():
        search.install(adapters.values(), lambda line: print(line, file=sys.stderr, flush=True))


def _row(item: pytest.Function) -> Row:
    """The row that a test is about: the one its parameter `name` names in its module's ROWS."""
    row: Row = item.module.ROWS[item.callspec.params["name"]]
    return row


@pytest.fixture(scope="session")
def search(pytestconfig: pytest.Config) -> Search:
    """Where agents are found."""
    return pytestconfig.stash[_SEARCH]
