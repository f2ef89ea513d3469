"""A rate is that of all servers together: what one lets through is taken off what the others may."""

from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.cluster.test_revoked_anywhere import TOKEN, client_of
from tests.support.databases import Cluster
from tests.support.patience import wait_until

_SLOW = 0.001
"""A request in so many seconds that none comes back during a test."""


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, "--token", TOKEN)
        yield found
    finally:
        found.close()


def retry_after(client: httpx.Client) -> int:
    answer = client.get("/me")
    return int(answer.headers["retry-after"]) if answer.status_code == 429 else 0


def test_what_two_servers_let_through_counts_at_both(servers: Servers) -> None:
    with client_of(servers, "a", TOKEN) as token:
        made = token.post("/api-keys", json={"name": "fast", "role": "viewer"}).json()
        put = {"scope": "actor", "actor": f"key:{made['id']}", "requestsPerSecond": _SLOW}
        assert token.put("/limits", json=put).status_code == 200
        with client_of(servers, "b", TOKEN) as other:
            wait_until(lambda: other.get("/limits").json()["items"], what="the other server knows the limit")
    with client_of(servers, "a", made["key"]) as a, client_of(servers, "b", made["key"]) as b:
        assert (a.get("/me").status_code, b.get("/me").status_code) == (200, 200)  # neither knew of the other's yet
        wait_until(lambda: retry_after(a) > 1500, what="both requests count at a")
        wait_until(lambda: retry_after(b) > 1500, what="and at b")


def test_a_server_that_starts_anew_owes_what_it_let_through(servers: Servers) -> None:
    with client_of(servers, "a", TOKEN) as token:
        made = token.post("/api-keys", json={"name": "again", "role": "viewer"}).json()
        put = {"scope": "actor", "actor": f"key:{made['id']}", "requestsPerSecond": _SLOW}
        assert token.put("/limits", json=put).status_code == 200
        with client_of(servers, "a", made["key"]) as a:
            assert a.get("/me").status_code == 200
            wait_until(lambda: retry_after(a) > 0, what="it is refused")
        with client_of(servers, "b", made["key"]) as b:
            wait_until(lambda: retry_after(b) > 1500, what="the request there counts too")
    servers.kill("a")
    servers.start("a", "--token", TOKEN)
    with client_of(servers, "a", made["key"]) as a:
        wait_until(lambda: retry_after(a) > 2500, what="so does the third")
