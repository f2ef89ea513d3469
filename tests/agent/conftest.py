"""A scripted model for the agent's tests."""

from collections.abc import Iterator

import pytest

from ostler.conformance.model import ScriptedModel


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A model of one's own."""
    with ScriptedModel() as running:
        yield running
