"""Signing in in a browser: at a provider and back, what its cookie is good for, and what is refused on the way."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from click.testing import CliRunner
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ostler.cli import root
from ostler.server.auth.scope import Scope
from ostler.server.store.access import SignInRow
from tests.server.api.test_keys import TOKEN, client_of
from tests.support.fleet import fleet_in
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.providers import AUDIENCE, WEB_CLIENT, WEB_SECRET, Provider, running_provider
from tests.support.serving import RunningServer, running_server

pytestmark = pytest.mark.lane("server")
RULES = [{"claim": "groups", "equals": "team", "role": "operator", "project": "default"}]
PAGE = {"accept": "text/html"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.granted = {"groups": ["team"], "name": "Anna A."}
        yield running


def settings_of(provider: Provider) -> tuple[str, ...]:
    rules = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-claims", json.dumps(RULES))
    client = ("--oidc-client-id", WEB_CLIENT, "--oidc-client-secret", WEB_SECRET)
    return ("--token", TOKEN, *rules, *client)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("sign-in") / "state", *settings_of(provider)) as running:
        yield running


@pytest.fixture
def browser(server: RunningServer) -> Iterator[httpx.Client]:
    """A client that keeps cookies, as a browser does."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def sign_in(browser: httpx.Client, provider: Provider, page: str = "/inbox", **claims: Any) -> httpx.Response:
    return browser.get(provider.came(begin(browser, page), **claims), headers=PAGE)


def begin(browser: httpx.Client, page: str = "/") -> str:
    answer = browser.get("/api/v1/sign-in/oidc", params={"next": page})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def me(browser: httpx.Client) -> dict[str, Any]:
    return dict(browser.get("/api/v1/me").json())


@pytest.mark.lane("fast")
def test_who_signs_in_is_known_by_a_cookie_until_they_sign_out(
    server: RunningServer, browser: httpx.Client, provider: Provider
) -> None:
    assert browser.get("/api/v1/providers").json()["browser"] == [
        {"name": provider.issuer.removeprefix("http://"), "path": "/api/v1/sign-in/oidc"}
    ]
    assert_problem(browser.get("/api/v1/me"), "token_invalid")
    answer = sign_in(browser, provider)
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")
    kept = next(each for each in answer.headers.get_list("set-cookie") if each.startswith("ostler="))
    assert {"HttpOnly", "Path=/", "SameSite=lax", "Max-Age=43200"} <= {part.strip() for part in kept.split(";")}
    known = me(browser)
    assert (known["actor"], known["name"], known["role"]) == ("oidc:anna", "Anna A.", "operator")
    assert known["signedIn"] is True
    own = {"origin": server.url}
    assert browser.post("/api/v1/sessions", json={"agent": "mock"}, headers=own).status_code == 201
    left = browser.post("/api/v1/sign-out", headers=own)
    after = urlencode({"client_id": WEB_CLIENT, "post_logout_redirect_uri": f"{server.url}/"})
    assert left.json() == {"next": f"{provider.issuer}/leave?{after}"}
    assert_problem(browser.get("/api/v1/me"), "token_invalid")
    with client_of(server, TOKEN) as token:
        lines = token.get("/audit", params={"actor": "oidc:anna"}).json()["items"]
    assert {"sign-in.finish", "sign-in.end", "sessions.create"} <= {each["action"] for each in lines}


def test_a_cookie_that_was_copied_is_good_for_nothing_after_signing_out(
    server: RunningServer, browser: httpx.Client, provider: Provider
) -> None:
    sign_in(browser, provider)
    copied = {"cookie": f"ostler={browser.cookies['ostler']}"}
    assert httpx.get(f"{server.url}/api/v1/me", headers=copied).status_code == 200
    assert browser.post("/api/v1/sign-out", headers={"origin": server.url}).status_code == 200
    assert_problem(httpx.get(f"{server.url}/api/v1/me", headers=copied), "token_invalid")


def test_who_signs_in_again_has_another_cookie_and_the_first_is_over(
    server: RunningServer, browser: httpx.Client, provider: Provider
) -> None:
    sign_in(browser, provider)
    first = {"cookie": f"ostler={browser.cookies['ostler']}"}
    sign_in(browser, provider)
    assert me(browser)["actor"] == "oidc:anna"
    assert_problem(httpx.get(f"{server.url}/api/v1/me", headers=first), "token_invalid")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost:3000"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {},
    ],
    ids=str,
)
def test_other_pages_of_this_host_may_not_use_the_cookie(
    server: RunningServer, browser: httpx.Client, provider: Provider, headers: dict[str, str]
) -> None:
    sign_in(browser, provider)
    assert_problem(browser.post("/api/v1/sessions", json={"agent": "mock"}, headers=headers), "foreign_origin")
    address = f"{server.url.replace('http', 'ws')}/api/v1/sessions/none/terminal/ws"
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address, additional_headers={"cookie": f"ostler={browser.cookies['ostler']}", **headers}),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_a_read_without_a_word_of_whose_page_asks_is_answered_and_one_of_another_is_not(
    browser: httpx.Client, provider: Provider
) -> None:
    sign_in(browser, provider)
    assert browser.get("/api/v1/me").status_code == 200
    assert browser.get("/api/v1/me", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    other = {"sec-fetch-site": "same-site"}
    assert_problem(browser.get("/api/v1/events?stream=true", headers=other), "foreign_origin")


@pytest.mark.parametrize("path", ["/mcp", "/acp", "/v1/sessions"])
def test_other_protocols_take_no_cookie(browser: httpx.Client, provider: Provider, path: str) -> None:
    sign_in(browser, provider)
    assert browser.get(path, headers={"accept": "application/json, text/event-stream"}).status_code == 401


@pytest.mark.parametrize(
    "page", ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "", "/" + "a" * 1001]
)
def test_nobody_is_sent_to_another_server_after_signing_in(browser: httpx.Client, page: str) -> None:
    answer = browser.get("/api/v1/sign-in/oidc", params={"next": page})
    assert "next" in assert_problem(answer, "invalid_request")["errors"]


def test_a_state_that_is_missing_another_or_used_before_is_refused(browser: httpx.Client, provider: Provider) -> None:
    back = provider.came(begin(browser))
    with httpx.Client(base_url=browser.base_url, timeout=60) as other:
        assert "has not begun" in assert_problem(other.get(back), "sign_in_failed")["detail"]
        assert "ostler" not in other.cookies
    assert browser.get(back).status_code == 303
    assert "has not begun" in assert_problem(browser.get(back), "sign_in_failed")["detail"]
    begin(browser)
    assert "another sign-in" in assert_problem(browser.get(back), "sign_in_failed")["detail"]


def test_a_sign_in_that_this_server_did_not_begin_is_refused_before_its_provider_is_asked(
    server: RunningServer, browser: httpx.Client, provider: Provider
) -> None:
    begin(browser)
    content, _, signature = browser.cookies["ostler-begun"].partition(".")
    began = json.loads(base64.urlsafe_b64decode(content + "=="))
    changed = base64.urlsafe_b64encode(json.dumps({**began, "state": "s"}).encode()).rstrip(b"=").decode()
    asked = provider.redeemed
    for kept in (f"{changed}.{signature}", f"{changed}.", changed, json.dumps({**began, "state": "s"}), "\u00e4.b"):
        back = {"code": "made-up", "state": "s", "iss": provider.issuer}
        made_up = {b"cookie": f"ostler-begun={kept}".encode()}
        answer = httpx.get(f"{server.url}/api/v1/sign-in/oidc/done", params=back, headers=made_up)
        assert "has not begun" in assert_problem(answer, "sign_in_failed")["detail"]
    assert provider.redeemed == asked


def test_who_comes_back_wrong_too_often_is_not_heard_for_a_while(tmp_path: Path, provider: Provider) -> None:
    more = ("--max-wrong-tokens", "3")
    with (
        running_server(tmp_path / "state", *settings_of(provider), *more) as server,
        httpx.Client(base_url=server.url, timeout=60) as browser,
    ):
        asked = provider.redeemed
        for _ in range(3):
            back = provider.came(begin(browser))
            provider.codes.clear()
            assert_problem(browser.get(back), "sign_in_failed")
        refused = browser.get(provider.came(begin(browser)))
        assert_problem(refused, "too_many_wrong_tokens")
        assert (provider.redeemed - asked, int(refused.headers["retry-after"]) <= 60) == (3, True)
        with client_of(server, TOKEN) as token:
            assert token.get("/me").status_code == 200


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"nonce": "another"}, "another sign-in"),
        ({"aud": "another"}, "audience"),
        ({"iss": "http://127.0.0.1:1"}, "issuer"),
        ({"exp": 1_700_000_000}, "expired"),
        ({"azp": "another"}, "another sign-in"),
    ],
    ids=str,
)
def test_an_answer_that_is_not_for_this_sign_in_is_refused(
    browser: httpx.Client, provider: Provider, claims: dict[str, Any], words: str
) -> None:
    detail = assert_problem(browser.get(provider.came(begin(browser), **claims)), "sign_in_failed")["detail"]
    assert words in detail
    assert "ostler" not in browser.cookies


def test_an_answer_of_another_provider_or_a_refusal_is_told(browser: httpx.Client, provider: Provider) -> None:
    back = provider.came(begin(browser))
    assert "provider that was asked" in browser.get(back.partition("&iss=")[0]).json()["detail"]
    refused = provider.came(begin(browser)).replace("code=", "error=access_denied&was=")
    assert "access_denied" in assert_problem(browser.get(refused), "sign_in_failed")["detail"]


def test_a_code_that_is_over_is_told_on_a_page(browser: httpx.Client, provider: Provider) -> None:
    back = provider.came(begin(browser))
    provider.codes.clear()
    answer = browser.get(back, headers=PAGE)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "<h1>Not signed in</h1>" in answer.text
    assert "does not take its own code any more" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_provider_that_is_away_is_told(tmp_path: Path, browser: httpx.Client, provider: Provider) -> None:
    back = provider.came(begin(browser))
    provider.is_away = True
    try:
        answer = browser.get(back, headers=PAGE)
    finally:
        provider.is_away = False
    assert (answer.status_code, "cannot be asked" in answer.text) == (503, True)


def test_who_has_no_role_is_told_so_and_noted(server: RunningServer, browser: httpx.Client, provider: Provider) -> None:
    answer = sign_in(browser, provider, sub="bert", groups=["cooks"])
    assert (answer.status_code, "<h1>No role</h1>" in answer.text, "groups" in answer.text) == (403, True, True)
    assert "ostler" not in browser.cookies
    with client_of(server, TOKEN) as token:
        wait_until(lambda: token.get("/audit", params={"actor": "oidc:bert"}).json()["items"] != [], what="the line")


def test_a_stream_ends_when_its_reader_signs_out(
    server: RunningServer, browser: httpx.Client, provider: Provider
) -> None:
    sign_in(browser, provider)
    with browser.stream("GET", "/api/v1/events?stream=true") as stream:
        assert stream.status_code == 200
        assert browser.post("/api/v1/sign-out", headers={"origin": server.url}).status_code == 200
        assert all(True for _ in stream.iter_bytes())  # to its end


async def test_a_stream_that_was_let_in_before_its_reader_signed_out_ends(tmp_path: Path) -> None:
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        directory = fleet.services.directory
        row = SignInRow(
            id="sgn_1",
            hash="h",
            way="oidc",
            mark="m",
            actor="oidc:anna",
            name="Anna",
            grants="[]",
            created_at="2030-01-01T00:00:00.000Z",
            ends_at="2999-01-01T00:00:00.000Z",
        )
        await directory.sign_ins.add(row)
        asks = Scope(actor=row.actor, roles=("viewer",), sign_in=row.id)
        async with directory.ended_with_key(asks):
            pass
        await directory.sign_ins.end(row.id)
        with pytest.raises(TimeoutError):
            async with directory.ended_with_key(asks):
                await asyncio.Event().wait()


@pytest.mark.parametrize("asks", ["person", "admin", "command"])
def test_signing_out_everywhere_ends_every_browser_and_what_is_open_there(
    server: RunningServer, provider: Provider, asks: str
) -> None:
    with (
        httpx.Client(base_url=server.url, timeout=60) as one,
        httpx.Client(base_url=server.url, timeout=60) as other,
        httpx.Client(base_url=server.url, timeout=60) as bert,
        client_of(server, TOKEN) as token,
    ):
        actor = f"oidc:signs-out-{asks}"
        for each in (one, other):
            sign_in(each, provider, sub=actor.removeprefix("oidc:"))
        sign_in(bert, provider, sub="bert")
        with one.stream("GET", "/api/v1/events?stream=true") as stream:
            if asks == "command":
                words = ["--endpoint", server.url, "--token", TOKEN, "members", "sign-out", actor]
                done = CliRunner().invoke(root, words)
                assert (done.exit_code, done.output) == (0, f"{actor} is signed out in 2 browsers.\n")
            elif asks == "admin":
                answer = token.post("/members/sign-out", json={"actor": actor})
                assert answer.json() == {"actor": actor, "ended": 2}
            else:
                answer = other.post("/api/v1/members/sign-out", json={}, headers={"origin": server.url})
                assert answer.json() == {"actor": actor, "ended": 2}
            assert all(True for _ in stream.iter_bytes())  # to its end
        assert_problem(one.get("/api/v1/me"), "token_invalid")
        assert_problem(other.get("/api/v1/me"), "token_invalid")
        assert me(bert)["actor"] == "oidc:bert"
        line = token.get("/audit", params={"action": "members.sign-out"}).json()["items"][0]
        assert (line["target"], line["actor"]) == (actor, actor if asks == "person" else "token")


def test_only_an_admin_of_the_tenant_signs_others_out(server: RunningServer, provider: Provider) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as browser, client_of(server, TOKEN) as token:
        sign_in(browser, provider)
        own = {"origin": server.url}
        refused = browser.post("/api/v1/members/sign-out", json={"actor": "oidc:bert"}, headers=own)
        assert_problem(refused, "forbidden")
        for nobody in ({"actor": "oidc:nobody"}, {}):  # the token signs in nowhere
            assert_problem(token.post("/members/sign-out", json=nobody), "not_found")
        assert_problem(token.post("/members/sign-out", json={"actor": ""}), "invalid_request")
        assert token.post("/tenants", json={"name": "elsewhere"}).status_code == 201
        foreign = token.post(
            "/members/sign-out", json={"actor": "oidc:anna"}, headers={"ostler-project": "elsewhere/default"}
        )
        assert_problem(foreign, "not_found")
        assert me(browser)["actor"] == "oidc:anna"


def test_an_admin_of_a_tenant_signs_people_out_of_that_tenant_only(tmp_path: Path, provider: Provider) -> None:
    rules = [{"claim": "groups", "matches": "(?P<org>[a-z]+)", "role": "operator", "tenant": "{org}"}]
    args = (*settings_of(provider), "--oidc-claims", json.dumps(rules))
    with (
        running_server(tmp_path / "state", *args) as server,
        client_of(server, TOKEN) as token,
        httpx.Client(base_url=server.url, timeout=60) as both,
        httpx.Client(base_url=server.url, timeout=60) as alone,
    ):
        for tenant in ("acme", "umbrella"):
            assert token.post("/tenants", json={"name": tenant}).status_code == 201
        there = {"ostler-project": "acme/default"}
        key = token.post("/api-keys", json={"name": "boss", "role": "admin"}, headers=there).json()["key"]
        for browser, groups in ((both, ["acme", "umbrella"]), (alone, ["umbrella"])):
            sign_in(browser, provider, groups=groups)
        with client_of(server, key) as boss, both.stream("GET", "/api/v1/events?stream=true") as stream:
            ended = boss.post("/members/sign-out", json={"actor": "oidc:anna"})
            assert ended.json() == {"actor": "oidc:anna", "ended": 1}
            assert all(True for _ in stream.iter_bytes())  # to its end
        assert [me(browser)["tenant"] for browser in (both, alone)] == ["umbrella", "umbrella"]
        assert_problem(both.get("/api/v1/me", headers=there), "not_found")
        own = {"origin": server.url}
        ended = both.post("/api/v1/members/sign-out", json={}, headers=own)
        assert ended.json() == {"actor": "oidc:anna", "ended": 2}


def test_the_secret_of_a_cookie_is_replaced_and_the_former_is_good_for_a_while(
    tmp_path: Path, provider: Provider
) -> None:
    with (
        running_server(tmp_path / "state", *settings_of(provider)) as server,
        httpx.Client(base_url=server.url, timeout=60) as browser,
        client_of(server, TOKEN) as token,
    ):
        sign_in(browser, provider)
        first = browser.cookies["ostler"]
        assert "set-cookie" not in browser.get("/api/v1/me").headers

        def change(what: str) -> None:
            """As if time had passed; the server reads the rows again when something changes."""
            with closing(sqlite3.connect(tmp_path / "state" / "ostler.db", timeout=30)) as database:
                database.execute(f"UPDATE sign_ins SET {what}")
                database.commit()
            assert token.post("/api-keys", json={"name": "x", "role": "viewer"}).status_code == 201

        def with_cookie(secret: str) -> httpx.Response:
            return httpx.get(f"{server.url}/api/v1/me", headers={"cookie": f"ostler={secret}"})

        change("created_at = '2020-01-01T00:00:00.000Z'")
        lost = with_cookie(first)  # an answer that its browser never got
        assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(lost.headers["set-cookie"].split("; "))
        assert "set-cookie" not in with_cookie(first).headers  # of those that ask at once one gets it
        change("renewed_at = '2020-01-01T00:01:00.000Z'")
        assert me(browser)["actor"] == "oidc:anna"
        second = browser.cookies["ostler"]
        assert second not in {first, lost.cookies["ostler"]}
        assert with_cookie(lost.cookies["ostler"]).status_code == 401
        assert [with_cookie(each).status_code for each in (first, second, first)] == [200, 200, 200]
        change("former_until = '2020-01-01T00:00:00.000Z'")
        assert me(browser)["actor"] == "oidc:anna"
        assert_problem(with_cookie(first), "token_invalid")
        assert_problem(browser.get("/api/v1/me"), "token_invalid")  # the first was copied, so all is over


def test_sign_ins_outlive_the_server_and_end_with_the_rules(tmp_path: Path, provider: Provider) -> None:
    with running_server(tmp_path / "state", *settings_of(provider)) as first:
        with httpx.Client(base_url=first.url, timeout=60) as browser:
            sign_in(browser, provider)
            kept = {"cookie": f"ostler={browser.cookies['ostler']}"}
        first.process.kill()
        first.process.wait()
    with running_server(tmp_path / "state", *settings_of(provider)) as second:
        assert httpx.get(f"{second.url}/api/v1/me", headers=kept).json()["actor"] == "oidc:anna"
    changed = json.dumps([{**RULES[0], "role": "viewer"}])
    with running_server(tmp_path / "state", *settings_of(provider), "--oidc-claims", changed) as third:
        assert httpx.get(f"{third.url}/api/v1/me", headers=kept).status_code == 401


def test_without_a_provider_nobody_signs_in_in_a_browser(server: RunningServer, browser: httpx.Client) -> None:
    assert_problem(browser.get("/api/v1/sign-in/github"), "not_found")
    with client_of(server, TOKEN) as token:
        assert_problem(token.post("/sign-out"), "token_invalid")
