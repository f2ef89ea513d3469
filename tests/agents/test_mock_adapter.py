"""The mock agent's adapter is pure, complete and documented."""

from pathlib import Path
from typing import get_args

import pytest

from ostler.agents.adapter import Unreadable
from ostler.agents.mock import HANDLERS, MockTranslator
from ostler.agents.mock.frames import AnyFrame
from ostler.base.errors import Unprocessable
from ostler.programs.mock.loop import DIRECTIVES
from ostler.wire.running import PermissionAnswer
from tests.agents.mock_driver import launch, running, spec_for

RICH = ("mock: think a", "mock: say b c", r"mock: write x.py y\n", "mock: run echo hi", "mock: usage 1 2")


def _translated(frames: list[bytes]) -> list[object]:
    translator = MockTranslator(1)
    seen: list[object] = []
    for frame in frames:
        try:
            seen += translator.feed(frame)
        except Unreadable as error:
            seen.append((str(error), error.location))
    return seen


def test_the_same_frames_always_mean_the_same(tmp_path: Path) -> None:
    with running(tmp_path) as mock:
        mock.turn(*RICH, "mock: garbage")
    assert _translated(mock.frames) == _translated(mock.frames)


def test_each_frame_type_has_one_handler() -> None:
    assert set(HANDLERS) == set(get_args(AnyFrame))


def test_an_answer_to_an_ask_of_an_earlier_process_is_not_sent() -> None:
    assert MockTranslator(2).answer(PermissionAnswer(ask_id="per_1_3", allow=True)) == ()


@pytest.mark.parametrize(
    ("field", "value", "possible"),
    [("model", "gpt", "mock-small, mock-large"), ("variant", "huge", "low, high"), ("mode", "ask", "build, plan")],
)
def test_a_choice_it_does_not_have_is_refused(tmp_path: Path, field: str, value: str, possible: str) -> None:
    with pytest.raises(Unprocessable, match=rf"Agent 'mock' has no {field} '{value}'. Possible: {possible}\."):
        launch(spec_for(tmp_path, tmp_path, **{field: value}))


@pytest.mark.parametrize(("name", "example"), [(name, example) for name, (_, example) in DIRECTIVES.items()])
def test_the_guide_shows_every_directive_with_its_example(name: str, example: str) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mock-agent.md").read_text()
    assert f"mock: {example}\n" in guide, name
