"""Installs the suite's agents beside the first tests; a test of an agent waits until all are there."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ostler.agents import ADAPTERS
from tools.agent_cache import Search, cached_agents

_SEARCH = pytest.StashKey[Future[Search]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the agents of the tests that were selected; of several processes one does it and the others wait."""
    items = [item for item in session.items if isinstance(item, pytest.Function) and "search" in item.fixturenames]
    if session.config.option.collectonly or not items:
        return
    names = {item.callspec.params.get("name") for item in items}
    pool = ThreadPoolExecutor(1)
    session.config.stash[_SEARCH] = pool.submit(_installed, names)
    pool.shutdown(wait=False)


def _installed(names: set[object]) -> Search:
    search = cached_agents()
    chosen = [adapter for adapter in ADAPTERS if adapter.info.id in names]
    search.install(chosen, lambda line: print(line, file=sys.__stderr__, flush=True))
    return search


@pytest.fixture(scope="session")
def search(pytestconfig: pytest.Config) -> Search:
    """Where agents are found."""
    return pytestconfig.stash[_SEARCH].result()
