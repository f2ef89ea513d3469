"""What /metrics tells of runners and of what waits for them."""

from pathlib import Path

import httpx

from tests.support.hosts import started_runner, token_of
from tests.support.http_helpers import metrics
from tests.support.patience import wait_until
from tests.support.serving import running_server

TASK = {"prompt": "mock: say done", "agent": {"type": "mock"}, "repo": {"mode": "none"}}


def test_numbers_tell_of_the_queue_and_of_the_way_to_each_runner(tmp_path: Path) -> None:
    serving = running_server(tmp_path / "server" / "state", "--local-slots", "0", "--runner-beat-seconds", "0.5")
    with serving as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api:
        api.post("/tasks", json=TASK).raise_for_status()
        before = metrics(api)
        assert (before["ostler_waiting_sessions"], before["ostler_placement_seconds_count"]) == (1, 0)
        assert before["ostler_waiting_oldest_seconds"] > 0
        args = ("--server", server.url, "--name", "far")
        with started_runner(tmp_path / "far", *args, token=token_of(server.url)) as host:
            host.wait_linked()
            wait_until(lambda: metrics(api)["ostler_placement_seconds_count"] == 1, what="it is placed")
            after = metrics(api)
            assert (after["ostler_waiting_sessions"], after["ostler_waiting_oldest_seconds"]) == (0, 0)
            assert after["ostler_placement_seconds_sum"] >= before["ostler_waiting_oldest_seconds"]
            wait_until(
                lambda: 0 < metrics(api).get("ostler_runner_round_trip_seconds{far}", 0) < 60,
                what="its beats come back",
            )
