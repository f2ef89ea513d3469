"""A prompt, an answer and a task pass few files of ours, as a live server shows."""

from collections.abc import Iterator

import pytest

from tools.walks import Measured, Walk, measured_walks

BUDGETS = {"prompt": 60, "reply": 55, "task": 120}
"""How many files may carry each; `tools/walks.py` says what is counted, and `--files` which they are."""
MOST_TO_BEGIN = 8
"""How many files of `server/sessions` may be passed to begin a turn."""


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Walk]]:
    server = Measured(tmp_path_factory.mktemp("walks"))
    try:
        yield measured_walks(server)
    finally:
        server.close()


@pytest.mark.parametrize("name", BUDGETS)
def test_a_walk_passes_no_more_files_than_its_budget(walks: dict[str, Walk], name: str) -> None:
    files = walks[name].files
    assert len(files) <= BUDGETS[name], "\n".join(files)


def test_to_begin_a_turn_passes_few_files_of_sessions(walks: dict[str, Walk]) -> None:
    files = walks["prompt"].beginning
    assert 0 < len(files) <= MOST_TO_BEGIN, "\n".join(files)
