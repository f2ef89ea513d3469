"""Fixtures of the runner's tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ostler.runner.processes.nursery import NurseryHandle
from tests.support.runner_parts import Leash


@pytest.fixture
async def nursery() -> AsyncIterator[NurseryHandle]:
    handle = NurseryHandle({})
    yield handle
    await handle.close()


@pytest.fixture
def leash(tmp_path: Path) -> Iterator[Leash]:
    made = Leash(tmp_path / "leash")
    yield made
    made.close()
