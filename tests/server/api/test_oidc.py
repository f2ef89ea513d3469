"""People with tokens of an OpenID provider: what they may do by their claims, and which tokens are none."""

import asyncio
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from ostler.base.errors.access import ProviderAway
from ostler.cli import root
from ostler.server.auth.signing_keys import SigningKeys
from tests.server.api.test_keys import TOKEN, client_of
from tests.support.certificates import Authority, Pair
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.providers import AUDIENCE, Provider, running_provider
from tests.support.serving import RunningServer, running_server

pytestmark = pytest.mark.lane("server")
RULES = [
    {
        "claim": "/groups",
        "matches": "/(?P<t>[^/]+)/(?P<p>[^/]+)/(?P<r>[a-z]+)s",
        "tenant": "{t}",
        "project": "{p}",
        "role": "{r}",
    },
    {"claim": "https://acme.example.com/roles", "equals": "boss", "tenant": "acme", "role": "admin"},
]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[RunningServer]:
    args = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-claims", json.dumps(RULES))
    more = ("--public-url", "https://ostler.example.com", "--max-wrong-tokens", "10000")
    state = tmp_path_factory.mktemp("oidc") / "state"
    with running_server(state, "--token", TOKEN, *args, *more) as running, client_of(running, TOKEN) as token:
        assert token.post("/tenants", json={"name": "acme"}).status_code == 201
        for project in ("web", "app"):
            made = token.post("/projects", json={"name": project}, headers={"ostler-project": "acme/default"})
            assert made.status_code == 201
        yield running


def ask(server: RunningServer, token: str, path: str = "/me", **headers: str) -> httpx.Response:
    given = {"authorization": f"Bearer {token}", **headers}
    return httpx.get(f"{server.url}/api/v1{path}", headers=given, timeout=60)


def test_claims_say_who_may_do_what_and_where(server: RunningServer, provider: Provider) -> None:
    token = provider.token(
        name="Anna", groups=["/acme/web/operators", "/acme/app/viewers", "/acme/web/kings", "/x/y/admins"]
    )
    me = ask(server, token).json()
    assert (me["actor"], me["role"], me["reach"], me["tenant"]) == ("oidc:anna", "operator", "project", "acme")
    assert sorted(each["name"] for each in me["projects"]) == ["app", "web"]
    assert ask(server, token, **{"ostler-project": "acme/app"}).json()["role"] == "viewer"
    assert_problem(ask(server, token, **{"ostler-project": "acme/default"}), "not_found")
    body = {"agent": "mock"}
    assert httpx.post(f"{server.url}/api/v1/sessions", json=body, headers=bearer(token)).status_code == 201
    app = {**bearer(token), "ostler-project": "acme/app"}
    assert_problem(httpx.post(f"{server.url}/api/v1/sessions", json=body, headers=app), "forbidden")


def post(server: RunningServer, token: str, path: str, body: object, **headers: str) -> httpx.Response:
    given = {**bearer(token), **headers}
    return httpx.post(f"{server.url}/api/v1{path}", json=body, headers=given, timeout=60)


def test_a_role_in_one_project_is_none_in_another_that_a_request_names(
    server: RunningServer, provider: Provider
) -> None:
    token = provider.token(sub="both", groups=["/acme/web/admins", "/acme/app/viewers"])
    key = {"name": "x", "role": "viewer"}
    assert post(server, token, "/api-keys", {**key, "projectId": "web"}).status_code == 201
    assert_problem(post(server, token, "/api-keys", {**key, "projectId": "app"}), "forbidden")
    task = {"prompt": "hello", "agent": {"type": "mock"}}
    assert_problem(post(server, token, "/tasks", {**task, "projectId": "app"}), "forbidden")


def test_who_has_a_whole_tenant_sets_no_limits_of_another(server: RunningServer, provider: Provider) -> None:
    roles: dict[str, Any] = {"https://acme.example.com/roles": ["boss"]}
    token = provider.token(sub="guest", groups=["/default/default/viewers"], **roles)
    limits = {"scope": "project", "projectId": "default/default", "liveSessions": 1}
    given = {**bearer(token), "ostler-project": "acme/web"}
    answer = httpx.put(f"{server.url}/api/v1/limits", json=limits, headers=given, timeout=60)
    assert_problem(answer, "forbidden")


def test_of_two_equal_roles_the_one_that_reaches_further_counts(server: RunningServer, provider: Provider) -> None:
    roles: dict[str, Any] = {"https://acme.example.com/roles": ["boss"]}
    token = provider.token(sub="wide", groups=["/acme/default/admins"], **roles)
    assert ask(server, token, **{"ostler-project": "acme/default"}).json()["reach"] == "tenant"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_people_that_came_are_members(server: RunningServer, provider: Provider) -> None:
    roles: dict[str, Any] = {"https://acme.example.com/roles": ["boss"]}
    boss = provider.token(sub="boss", name="The Boss", **roles)
    assert ask(server, boss).json()["reach"] == "tenant"
    members = {each["actor"]: each for each in ask(server, boss, "/members").json()["items"]}
    assert (members["oidc:boss"]["name"], members["oidc:boss"]["role"]) == ("The Boss", "admin")
    lines = ask(server, boss, "/audit").json()["items"]
    assert {each["tenant"] for each in lines} <= {"acme"}


def test_a_key_that_the_provider_made_later_is_found(server: RunningServer, provider: Provider) -> None:
    assert ask(server, provider.token(groups=["/acme/web/viewers"])).status_code == 200
    provider.add_key("k2", is_rsa=True)
    later = provider.token("k2", groups=["/acme/web/viewers"])
    for _ in range(150):  # the keys were read a moment ago, and are not asked for at once again
        if (answer := ask(server, later)).status_code == 200:
            break
        time.sleep(0.1)  # between two looks
    assert answer.status_code == 200, answer.text


def test_what_was_verified_is_not_verified_again(server: RunningServer, provider: Provider) -> None:
    token = provider.token(groups=["/acme/web/viewers"])
    assert ask(server, token).status_code == 200
    before = provider.asked
    assert {ask(server, token).status_code for _ in range(20)} == {200}
    assert provider.asked == before


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "http://127.0.0.1:1"},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": 4_000_000_000},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": 7},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_is_refused(
    server: RunningServer, provider: Provider, claims: dict[str, Any]
) -> None:
    assert_problem(ask(server, provider.token(groups=["/acme/web/admins"], **claims)), "token_invalid")


@pytest.mark.parametrize("algorithm", ["none", "None", "nOnE", "HS256"])
def test_an_unsigned_token_is_refused(server: RunningServer, provider: Provider, algorithm: str) -> None:
    assert_problem(ask(server, provider.unsigned(algorithm, groups=["/acme/web/admins"])), "token_invalid")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"),
        lambda token: token + ".",
        lambda token: "a.b.c",
        lambda token: token.partition(".")[2] + ".x",
        lambda token: token + "A" * 17_000,
    ],
    ids=["changed", "four parts", "no token", "no header", "too long"],
)
def test_a_token_that_was_changed_is_refused(server: RunningServer, provider: Provider, spoil: Any) -> None:
    assert_problem(ask(server, spoil(provider.token(groups=["/acme/web/admins"]))), "token_invalid")


def test_a_token_of_another_kind_is_refused(server: RunningServer, provider: Provider) -> None:
    for kind in ("logout+jwt", "dpop+jwt"):
        refused = ask(server, provider.token(headers={"typ": kind}, groups=["/acme/web/admins"]))
        assert "kind" in assert_problem(refused, "token_invalid")["detail"]


def test_who_no_rule_knows_is_told_the_names_of_the_claims(server: RunningServer, provider: Provider) -> None:
    detail = assert_problem(ask(server, provider.token(groups=["cooks"], secret="x-7")), "no_role")["detail"]
    assert ("groups" in detail, "x-7" in detail, "cooks" in detail) == (True, False, False)
    crowd = assert_problem(ask(server, provider.token(hasgroups=True)), "no_role")["detail"]
    assert "too many" in crowd


def test_names_with_half_a_character_stop_nothing(server: RunningServer, provider: Provider) -> None:
    roles: dict[str, Any] = {"https://acme.example.com/roles": ["boss"]}
    odd = provider.token(sub="odd", name="sur\ud800x\n" + "y" * 300, **roles)
    assert ask(server, odd).status_code == 200

    def names() -> list[str]:
        return [each["name"] for each in ask(server, odd, "/members").json()["items"] if each["actor"] == "oidc:odd"]

    (name,) = names()
    assert (name[:6], len(name)) == ("sur\N{REPLACEMENT CHARACTER}x\N{REPLACEMENT CHARACTER}", 200)
    time.sleep(1.0)  # some of those who came are stored meanwhile
    with client_of(server, TOKEN) as token:
        assert token.post("/sessions", json={"agent": "mock"}).status_code == 201
    claims: dict[str, Any] = {"sur\ud800x": 1}
    refused = provider.token(sub="stranger", **claims)
    assert "sur\N{REPLACEMENT CHARACTER}x" in assert_problem(ask(server, refused), "no_role")["detail"]
    assert_problem(ask(server, provider.token(headers={"typ": "\ud800"})), "token_invalid")


def test_who_has_no_role_is_named_in_the_log(server: RunningServer, provider: Provider) -> None:
    assert_problem(ask(server, provider.token(sub="nobody", groups=["cooks"])), "no_role")
    with client_of(server, TOKEN) as token:
        wait_until(lambda: token.get("/audit", params={"actor": "oidc:nobody"}).json()["items"] != [], what="the line")


def test_a_header_of_ten_megabytes_is_refused_before_it_is_read(server: RunningServer) -> None:
    assert ask(server, "a." + "b" * 10_000_000 + ".c").status_code == 431


async def test_keys_stay_good_for_a_day_while_the_provider_is_away() -> None:
    now = [0.0]
    with running_provider() as provider:
        keys = SigningKeys(provider.issuer, lambda: True, lambda: None, lambda: now[0])
        assert await keys.find("k1") is not None
        provider.is_away = True
        now[0] += 86_000
        assert await keys.find("k1") is not None
        assert await keys.find("unknown") is None
        now[0] += 1_000
        with pytest.raises(ProviderAway):
            await keys.find("k1")
        provider.is_away = False
        now[0] += 11
        assert await keys.find("k1") is not None
        await keys.close()


async def test_many_unknown_keys_are_one_question() -> None:
    with running_provider() as provider:
        keys = SigningKeys(provider.issuer, lambda: True, lambda: None, lambda: 1.0)
        assert set(await asyncio.gather(*(keys.find(f"u{number}") for number in range(50)))) == {None}
        assert provider.asked == 1
        await keys.close()


async def test_keys_that_the_provider_took_back_are_forgotten() -> None:
    now, forgotten = [0.0], list[bool]()
    with running_provider() as provider:
        keys = SigningKeys(provider.issuer, lambda: True, lambda: forgotten.append(True), lambda: now[0])
        assert await keys.find("k1") is not None
        del provider.keys["k1"]
        provider.add_key("k2")
        now[0] += 301
        assert await keys.find("k2") is not None
        assert (await keys.find("k1"), forgotten) == (None, [True])
        await keys.close()


async def test_a_provider_that_calls_itself_otherwise_is_not_asked_for_keys() -> None:
    with running_provider() as provider:
        provider.names_itself = "https://other.example.com"
        keys = SigningKeys(provider.issuer, lambda: True, lambda: None)
        with pytest.raises(ProviderAway):
            await keys.find("k1")
        assert provider.asked == 0
        await keys.close()


@pytest.mark.parametrize("error", [FileNotFoundError("/gone/ca.pem"), RuntimeError("not foreseen")], ids=repr)
async def test_whatever_goes_wrong_with_the_keys_is_no_error_of_the_request(error: Exception) -> None:
    def trust() -> bool:
        raise error

    with running_provider() as provider:
        keys = SigningKeys(provider.issuer, trust, lambda: None)
        with pytest.raises(ProviderAway):
            await keys.find("k1")
        await keys.close()


def test_mcp_clients_are_told_where_they_get_a_token(server: RunningServer, provider: Provider) -> None:
    refused = httpx.post(f"{server.url}/mcp", json={})
    assert_problem(refused, "token_invalid")
    place = "/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="https://ostler.example.com{place}"' in refused.headers["www-authenticate"]
    assert httpx.get(f"{server.url}{place}").json() == {
        "resource": "https://ostler.example.com/mcp",
        "authorization_servers": [provider.issuer],
        "bearer_methods_supported": ["header"],
    }
    for_mcp = provider.token(aud="https://ostler.example.com/mcp", groups=["/acme/web/operators"])
    headers = {**bearer(for_mcp), "accept": "application/json, text/event-stream"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert httpx.post(f"{server.url}/mcp", json=asked, headers=headers, timeout=60).status_code == 200


def test_a_stream_ends_when_its_token_does(server: RunningServer, provider: Provider) -> None:
    token = provider.token(exp=int(time.time()) - 27, groups=["/acme/web/viewers"])  # 30 s of leeway
    address = f"{server.url}/api/v1/events"
    headers = {**bearer(token), "accept": "text/event-stream"}
    with httpx.stream("GET", address, headers=headers, timeout=60) as stream:
        assert stream.status_code == 200
        assert b"the credential is good no more" in b"".join(stream.iter_raw())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"oidc-audience": "a"}, "oidc_audience"),
        ({"oidc-issuer": "http://id.example.com", "oidc-audience": "a", "oidc-claims": "[]"}, "oidc_issuer"),
        ({"oidc-claims": "["}, "oidc_claims"),
        ({"oidc-claims": '[{"claim": "x", "role": "admin"}]'}, "equals or matches"),
        ({"oidc-claims": '[{"claim": "x", "equals": "y", "role": "king"}]'}, "king"),
        ({"oidc-claims": '[{"claim": "x", "matches": "(", "role": "admin"}]'}, "regular expression"),
        ({"oidc-claims": '[{"claim": "x", "matches": "y", "role": "{r}"}]'}, "{r}"),
        ({"tls-client-claims": '[{"claim": "names", "equals": "y", "role": "admin"}]'}, "tls_client_claims"),
        ({"public-url": "ostler.example.com"}, "public_url"),
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_by_name(tmp_path: Path, given: dict[str, str], named: str) -> None:
    whole = {"oidc-issuer": "https://id.example.com", "oidc-audience": "a"} if "oidc-claims" in given else {}
    words = [word for name, value in (whole | given).items() for word in (f"--{name}", value)]
    found = CliRunner().invoke(root, ["serve", "--state-dir", str(tmp_path), *words])
    assert (found.exit_code != 0, named in found.output + str(found.exception)) == (True, True)


def test_a_certificate_that_a_rule_knows_is_a_credential(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other", "other")
    rules = [{"claim": "names", "matches": r"(?P<n>[a-z]+)\.ci\.example\.com", "role": "viewer", "project": "default"}]
    args = ("--tls-client-ca", str(authority.file), "--tls-client-claims", json.dumps(rules))
    with running_server(tmp_path / "state", *authority.pair("server").served, *args) as server:

        def asked(pair: Pair | None) -> httpx.Response:
            trust = ssl.create_default_context(cafile=str(authority.file))
            if pair is not None:
                trust.load_cert_chain(pair.certificate, pair.key)
            with httpx.Client(verify=trust) as client:
                return client.get(f"{server.url}/api/v1/me")

        me = asked(authority.pair("build", ["build.ci.example.com"])).json()
        assert (me["actor"], me["role"], me["reach"]) == ("cert:build", "viewer", "project")
        assert_problem(asked(authority.pair("runner", ["runner.example.com"])), "token_invalid")
        assert_problem(asked(None), "token_invalid")
        with pytest.raises(httpx.TransportError):  # the handshake ends
            asked(stranger.pair("build", ["build.ci.example.com"]))


def test_without_a_provider_the_library_is_not_loaded(tmp_path: Path) -> None:
    with running_server(tmp_path / "state", "--token", TOKEN) as server:
        assert_problem(ask(server, "a.b.c"), "token_invalid")
        maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "cryptography" not in maps
