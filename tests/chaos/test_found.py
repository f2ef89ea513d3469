"""What the random runs found, each as the smallest story that shows it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.chaos.checker import stored_sessions
from tests.chaos.log_rules import broken
from tests.chaos.victim import Victim, is_alive
from tests.support.patience import stretched, until
from tests.support.talk import Talk


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    return Victim(tmp_path)


def client_of(victim: Victim) -> httpx.Client:
    return httpx.Client(base_url=f"{victim.url}/api/v1", timeout=stretched(60))


@pytest.mark.parametrize("verb", ["cancel", "stop"])
async def test_the_end_of_a_session_does_not_begin_a_queued_prompt(victim: Victim, verb: str) -> None:
    assert await victim.start()
    with client_of(victim) as api:
        talk = Talk(api)
        talk.send("mock: wait 600")
        talk.send("mock: stream 50 words 50/s")
        talk.until(lambda event: "start" in event["data"])
        assert talk.post(f"/{verb}").status_code == 200
        assert talk.get().get("process") is None
    await victim.stop()
    session = stored_sessions(victim.state_dir / "ostler.db")[talk.id]
    assert broken(session.id, session.events) == []
    assert [event["type"] for event in session.events].count("turn.started") == 1


async def test_a_server_starts_although_an_idle_sessions_process_left_nothing_readable(victim: Victim) -> None:
    assert await victim.start()
    with client_of(victim) as api:
        talk = Talk(api)
        talk.turn("mock: say one")
    (kept,) = victim.agents()
    victim.kill()
    os.kill(kept.keeper, signal.SIGKILL)
    with suppress(ProcessLookupError):  # what the keeper leaves is killed by others too
        os.kill(kept.pid, signal.SIGKILL)
    await until(lambda: not is_alive(kept.pid), "the end of the agent")
    for name in ("calls", "output"):
        (victim.state_dir / "keepers" / kept.folder / name).write_bytes(b"")
    assert await victim.start()
    with client_of(victim) as api:
        talk.api = api
        assert talk.turn("mock: recall")[-1]["data"]["outcome"] == "completed"
    await victim.stop()
    session = stored_sessions(victim.state_dir / "ostler.db")[talk.id]
    assert broken(session.id, session.events) == []
