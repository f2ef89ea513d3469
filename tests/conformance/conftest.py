"""Installs the suite's agents before its first test, so that no test's time limit counts for it."""

import sys

import pytest

from ostler.agents import ADAPTERS
from tools.agent_cache import Search, cached_agents

_SEARCH = pytest.StashKey[Search]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the agents of the tests that were selected; of several processes one does it and the others wait."""
    items = [item for item in session.items if isinstance(item, pytest.Function) and "search" in item.fixturenames]
    if session.config.option.collectonly or not items:
        return
    names = {item.callspec.params["name"] for item in items}
    capture = session.config.pluginmanager.getplugin("capturemanager")
    session.config.stash[_SEARCH] = search = cached_agents()
    with capture.global_and_fixture_disabled():
        chosen = [adapter for adapter in ADAPTERS if adapter.info.id in names]
        search.install(chosen, lambda line: print(line, file=sys.stderr, flush=True))


@pytest.fixture(scope="session")
def search(pytestconfig: pytest.Config) -> Search:
    """Where agents are found."""
    return pytestconfig.stash[_SEARCH]
