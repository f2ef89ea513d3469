"""A task whose agent is stopped by a limit is not over: it goes on when the limit is."""

from pathlib import Path

import httpx

from tests.support.ordering import events, finished, order, task


def test_a_task_goes_on_after_a_limit_and_is_complete_then(api: httpx.Client, repository: Path) -> None:
    session = order(api, task("mock: write a.txt one\nmock: limit 2\nmock: say Done.", repository))
    assert finished(api, session)["status"] == "completed"
    assert [event["data"]["status"] for event in events(api, session, "session.limit")] == ["reached", "over"]
