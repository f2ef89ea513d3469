"""What clients and probes are told while the database is away."""

from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.talk import Talk


@pytest.fixture(scope="module")
def session(servers: Servers, cluster: Cluster) -> Iterator[str]:
    """A session of before; the database is away as long as there are tests."""
    with servers.api("a") as api:
        talk = Talk(api)
        talk.turn("mock: say before")
    cluster.stop()
    yield talk.id
    cluster.start()


def test_a_post_with_an_idempotency_key_is_refused_as_one_without(session: str, a: httpx.Client) -> None:
    body = {"agent": "mock", "title": "twice"}
    refused = a.post("/sessions", json=body, headers={"idempotency-key": "one"})
    assert (refused.status_code, refused.headers["content-type"]) == (503, "application/problem+json")
    assert refused.json()["code"] == "store_unreadable"
    assert int(refused.headers["retry-after"]) > 0


def test_who_reads_is_told_about_reading(session: str, a: httpx.Client) -> None:
    refused = a.get("/sessions")
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unreadable")
    assert (refused.json()["title"], "write" in refused.json()["detail"]) == ("Cannot read", False)
    assert int(refused.headers["retry-after"]) > 0


def test_a_probe_gets_the_same_answer_from_the_first_moment_on(session: str, b: httpx.Client) -> None:
    answers = [b.get("/readyz") for _ in range(3)]
    assert {answer.status_code for answer in answers} == {503}
    assert [answer.json() for answer in answers] == [answers[0].json()] * 3
    assert answers[0].json() == {"status": "unavailable", "checks": {"store": "The database does not answer."}}
