"""A turn of the agent goes on after its process, the keeper or the server was killed, and does nothing twice."""

import itertools
import random
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from tests.agent.killing import MOMENTS, WHOM, Killed, Moment, check, server_with

_KILLS, _LONG_KILLS, _PARTS = 20, 500, 10
_CALLS = 25


def test_a_turn_goes_on_whoever_is_killed_in_it(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (_, api):
        killed = Killed(tmp_path / "state", api)
        killed.begin(_KILLS + 2)
        for moment, whom in itertools.islice(itertools.cycle(itertools.product(MOMENTS, WHOM)), _KILLS):
            killed.kill_at(moment, whom)
            if killed.kills % 2 == 0:
                killed.comes_further()
        check(killed, killed.until_over(), model, _KILLS + 2)
    assert killed.kills >= _KILLS // 2


def test_a_turn_whose_agent_died_while_no_server_ran_goes_on(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (server, api):
        killed = Killed(tmp_path / "state", api)
        killed.begin(3, pause=1)
        assert killed.comes_to("begun")
        server.process.kill()
        server.process.wait()
        killed.kill_at("begun", "pid")
    with server_with(tmp_path / "state", model) as (_, api):
        killed.go_on_with(api)
        check(killed, killed.until_over(), model, 3)


@pytest.mark.parametrize("is_rebooted", [False, True])
def test_a_turn_whose_keeper_and_server_were_killed_goes_on(
    tmp_path: Path, model: ScriptedModel, *, is_rebooted: bool
) -> None:
    state = tmp_path / "state"
    with server_with(state, model) as (server, api):
        killed = Killed(state, api)
        killed.begin(3, pause=1)
        assert killed.comes_to("begun")
        server.process.kill()
        server.process.wait()
        killed.stop_the_machine() if is_rebooted else killed.kill_now("keeper")
        killed.kills += 1
    with server_with(state, model) as (_, api):
        killed.go_on_with(api)
        events = killed.until_over()
        check(killed, events, model, 3)
    assert "turn_continues" in [event["data"].get("code") for event in events if event["type"] == "notice"]


def test_a_process_that_dies_again_and_again_ends_the_turn(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (_, api):
        killed = Killed(tmp_path / "state", api)
        killed.talk.send("SCRIPT: slow 2000 0.05")
        while not any(event["type"] == "turn.ended" for event in killed.talk.events):
            killed.talk.until(lambda event: event["type"] in {"item.delta", "turn.ended"})
            killed.kill_now()
        ended = killed.talk.events[-1]["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("failed", "agent_process_exited")
        assert killed.talk.turn("SCRIPT: say Well again.")[-1]["data"]["outcome"] == "completed"


@pytest.mark.lane("chaos")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(_PARTS))
def test_five_hundred_kills_repeat_and_lose_nothing(tmp_path: Path, model: ScriptedModel, part: int) -> None:
    chance = random.Random(part)
    kills = session = 0
    while kills < _LONG_KILLS // _PARTS:
        session += 1
        state = tmp_path / str(session) / "state"
        state.parent.mkdir()
        before = len(model.requests)
        with server_with(state, model) as (_, api):
            killed = Killed(state, api)
            killed.begin(_CALLS)
            moment: Moment = chance.choice(MOMENTS)
            while killed.kill_at(moment, chance.choice(WHOM)):
                moment = chance.choice(MOMENTS)
                if killed.kills % 2 == 0:
                    killed.comes_further()
            check(killed, killed.until_over(), model, _CALLS, before)
        kills += killed.kills
