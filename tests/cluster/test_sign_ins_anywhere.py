"""Who signs in at one of two servers is known at the other at once, and signed out at both."""

import json
from collections.abc import Iterator
from threading import Event, Thread

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.databases import Cluster
from tests.support.patience import wait_until
from tests.support.providers import AUDIENCE, WEB_CLIENT, WEB_SECRET, Provider, running_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.granted = {"groups": ["team"]}
        yield running


@pytest.fixture(scope="module")
def pair(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Servers]:
    rules = json.dumps([{"claim": "groups", "equals": "team", "role": "viewer", "project": "default"}])
    known = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-claims", rules)
    client = ("--oidc-client-id", WEB_CLIENT, "--oidc-client-secret", WEB_SECRET)
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    try:
        for name in ("a", "b"):
            found.start(name, *known, *client)
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("path", ["sign-out", "members/sign-out"])
def test_a_sign_in_is_good_at_both_servers_and_over_at_both(pair: Servers, provider: Provider, path: str) -> None:
    with httpx.Client(timeout=60) as browser:  # cookies know no ports
        asked = browser.get(f"{pair.url('a')}/api/v1/sign-in/oidc").headers["location"]
        back = provider.came(asked)
        assert browser.get(back).status_code == 303
        assert [browser.get(f"{pair.url(name)}/api/v1/me").status_code for name in ("b", "a")] == [200, 200]
        opened = Event()

        def follow() -> None:
            with browser.stream("GET", f"{pair.url('a')}/api/v1/events?stream=true") as stream:
                opened.set()
                for _ in stream.iter_bytes():
                    pass

        reader = Thread(target=follow)
        reader.start()
        assert opened.wait(60)
        kept = {"cookie": f"ostler={browser.cookies['ostler']}"}
        left = browser.post(f"{pair.url('b')}/api/v1/{path}", json={}, headers={"origin": pair.url("b")})
        assert left.status_code == 200
        wait_until(
            lambda: httpx.get(f"{pair.url('a')}/api/v1/me", headers=kept).status_code == 401, "it is over at a", 2.0
        )
        reader.join(60)
        assert not reader.is_alive()
