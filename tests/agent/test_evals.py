"""`make eval` runs coding tasks and says what was solved; here with transcripts, so this is about the harness alone."""

from pathlib import Path

import msgspec
import pytest

from tools import evals


def test_a_task_is_solved_by_its_transcript_and_its_figures_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evals.main(["fix-a-test", "--output", str(tmp_path / "found.json")]) == 0
    [outcome] = msgspec.json.decode((tmp_path / "found.json").read_bytes(), type=list[evals.Outcome])
    assert (outcome.solved, outcome.calls, outcome.input > 0, outcome.output > 0) == (True, 5, True, True)
    assert "1 of 1 solved" in capsys.readouterr().out


@pytest.mark.lane("agents")
def test_all_tasks_are_solved_by_their_transcripts() -> None:
    assert evals.main([]) == 0


@pytest.mark.lane("agents")
@pytest.mark.parametrize(
    ("transcript", "why"),
    [
        (("say I mended it.",), "the check failed"),
        (("bash true", "say Done.", "say Never said."), "left the transcript: 2 calls of the model instead of 3"),
        (("error 401",), "the agent failed"),
    ],
)
def test_a_task_that_is_not_solved_is_told_with_the_reason(transcript: tuple[str, ...], why: str) -> None:
    whole = msgspec.toml.decode((evals.FOLDER / "fix-a-test.toml").read_bytes(), type=evals.Task)
    outcome = evals.attempt("fix-a-test", msgspec.structs.replace(whole, transcript=transcript), None)
    assert (outcome.solved, why in outcome.why) == (False, True), outcome
