"""A key that one server revokes is good for nothing at the others two seconds later, nor is what it opened there."""

import threading
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.http_helpers import assert_problem
from tests.support.patience import stretched, wait_until

TOKEN = "the-token-of-both-servers"
_PROMISED_SECONDS = 2.0


@pytest.fixture(scope="module")
def servers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers with one token."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, "--token", TOKEN)
        yield found
    finally:
        found.close()


def client_of(servers: Servers, name: str, key: str) -> httpx.Client:
    headers = {"authorization": f"ApiKey {key}"}
    return httpx.Client(base_url=f"{servers.url(name)}/api/v1", headers=headers, timeout=stretched(30))


def test_a_key_revoked_at_one_server_ends_at_the_other_with_its_streams_and_sockets(servers: Servers) -> None:
    with client_of(servers, "a", TOKEN) as token:
        made = token.post("/api-keys", json={"name": "leaves", "role": "operator", "projectId": "default"}).json()
        with client_of(servers, "b", made["key"]) as there:
            wait_until(lambda: there.get("/me").status_code == 200, what="the other server knows the key")
            address = f"ws{servers.url('b').removeprefix('http')}/acp"
            headers = {"authorization": f"Bearer {made['key']}"}
            with (
                there.stream("GET", "/events", headers={"accept": "text/event-stream"}) as events,
                connect(address, additional_headers=headers) as socket,
            ):
                read: list[bytes] = []
                reader = threading.Thread(target=lambda: read.extend(events.iter_bytes()))
                reader.start()
                assert token.delete(f"/api-keys/{made['id']}").status_code == 204
                wait_until(lambda: there.get("/me").status_code == 401, "the other refuses the key", _PROMISED_SECONDS)
                assert "was revoked" in assert_problem(there.get("/me"), "token_invalid")["detail"]
                reader.join(stretched(10))
                assert not reader.is_alive()
                assert b"the credential is good no more" in b"".join(read)
                with pytest.raises(ConnectionClosed) as closed:
                    socket.recv(timeout=stretched(10))
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 4401


def test_a_limit_set_at_one_server_counts_at_the_other(servers: Servers) -> None:
    with client_of(servers, "a", TOKEN) as token, client_of(servers, "b", TOKEN) as other:
        assert token.post("/projects", json={"name": "shared"}).status_code == 201
        wait_until(lambda: "shared" in {each["name"] for each in other.get("/projects").json()["items"]}, what="it")
        assert token.put("/limits", json={"projectId": "shared", "uploadBytesPerDay": 0}).status_code == 200
        named = {"ostler-project": "shared"}
        wait_until(lambda: other.post("/uploads", headers=named).status_code == 429, what="the other server knows")
