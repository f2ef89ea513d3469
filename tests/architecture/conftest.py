"""What the tests of this folder leave behind."""

from collections.abc import Iterator

import pytest

from tests.architecture.house import tree


@pytest.fixture(scope="package", autouse=True)
def parsed() -> Iterator[None]:
    """The trees of all files are a quarter of a gigabyte, which other tests have no use for."""
    yield
    tree.cache_clear()
