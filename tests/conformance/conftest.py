"""Where the suite's agents are."""

import os

import pytest


@pytest.fixture(scope="session")
def search() -> list[str]:
    """Folders in which programs are looked for."""
    return os.environ.get("PATH", os.defpath).split(os.pathsep)
