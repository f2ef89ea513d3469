"""A turn whose process is killed while it starts, at each point of that, goes on in the next one."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.agent.killing import WHOM, Killed, Whom, check
from tests.support.own_agent import with_model
from tests.support.serving import running_server

DYING = Path(__file__).with_name("dying.py")
POINTS = ("unready", "ready", "frame")
pytestmark = pytest.mark.lane("chaos")


def _events(tmp_path: Path, model: ScriptedModel, *dying: str, kill: bool) -> tuple[Killed, list[dict[str, Any]]]:
    """A turn of two calls; its agent is killed in it, if that is wanted, and dies by itself as `dying` says."""
    starts = tmp_path / "starts"
    program = (sys.executable, "-X", "utf8", str(DYING), *dying, str(starts))
    with (
        running_server(tmp_path / "state", env=with_model(model, *program)) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        killed = Killed(tmp_path / "state", api)
        killed.begin(2, pause=0.5)
        if kill:
            assert killed.kill_at("begun", "pid")
        events = killed.until_over()
        killed.kills += 1
    assert len(starts.read_text()) == 2 + kill
    return killed, events


@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("point", POINTS)
def test_a_process_that_goes_on_with_a_turn_may_be_killed_while_it_starts(
    tmp_path: Path, model: ScriptedModel, point: str, whom: Whom
) -> None:
    killed, events = _events(tmp_path, model, point, whom, "2", kill=True)
    check(killed, events, model, 2)
    assert "agent.unparsed" not in json.dumps(events)


@pytest.mark.parametrize("whom", WHOM)
@pytest.mark.parametrize("point", POINTS)
def test_the_first_process_of_a_turn_may_be_killed_while_it_starts(
    tmp_path: Path, model: ScriptedModel, point: str, whom: Whom
) -> None:
    killed, events = _events(tmp_path, model, point, whom, "1", kill=False)
    check(killed, events, model, 2)
