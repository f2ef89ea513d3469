"""A fork of what a person named stays a fork of it, whatever its agent would call it."""

from pathlib import Path

import httpx
import pytest

from tests.support.ordering import new_session, say

TITLED = "mock: title By the agent"


@pytest.mark.parametrize(
    ("of_parent", "of_fork", "before", "after"),
    [
        ("By me", None, "Fork of By me", "Fork of By me"),
        ("By me", "Mine", "Mine", "Mine"),
        (None, None, "Fork of mock: say Hello", "By the agent"),
        (None, "Mine", "Mine", "Mine"),
    ],
)
def test_the_agent_renames_a_fork_only_if_nobody_named_it_or_its_parent(
    api: httpx.Client, repository: Path, of_parent: str | None, of_fork: str | None, before: str, after: str
) -> None:
    parent = new_session(api, repository, title=of_parent)
    say(api, parent, "mock: say Hello")
    fork = api.post(f"/sessions/{parent}/fork", json={"title": of_fork}).json()
    say(api, fork["id"], TITLED)
    assert (fork["title"], api.get(f"/sessions/{fork['id']}").json()["title"]) == (before, after)
    for session in (parent, fork["id"]):
        api.delete(f"/sessions/{session}")
