"""Signing in with a browser somewhere: the token is kept, sent, renewed by one process at a time, and forgotten."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.forking import ran
from tests.support.patience import stretched
from tests.support.providers import AUDIENCE, Provider, running_provider
from tests.support.serving import RunningServer, clean_env, running_server

RULE = {"claim": "groups", "equals": "team", "role": "operator", "project": "default"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        running.granted = {"groups": ["team"]}
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[RunningServer]:
    args = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-claims", json.dumps([RULE]))
    state = tmp_path_factory.mktemp("login") / "state"
    with running_server(state, *args, "--oidc-client-id", "cli", "--max-wrong-tokens", "1000") as running:
        yield running


class Person:
    """Somebody with a home folder of their own."""

    def __init__(self, server: RunningServer, home: Path) -> None:
        self.env = clean_env(home, {"OSTLER_ENDPOINT": server.url})
        self.file = home / ".config" / "ostler" / "tokens.json"
        self.home = home

    def __call__(self, *words: str) -> tuple[int, str]:
        done = ran(words, env=self.env, cwd=self.home, seconds=stretched(60))
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def person(server: RunningServer, tmp_path: Path) -> Person:
    (tmp_path / "home").mkdir()
    return Person(server, tmp_path / "home")


def test_who_signs_in_is_known_until_they_sign_out(person: Person, provider: Provider) -> None:
    provider.polls_before_yes = 2
    assert "needs a token" in person("whoami")[1]
    code, told = person("login")
    assert (code, "confirm the code ABCD" in told, "oidc:anna" in told) == (0, True, True)
    assert person.file.stat().st_mode & 0o777 == 0o600
    assert "operator" in person("whoami")[1]
    assert person("run", "mock", "mock: say signed in")[0] == 0
    assert "Signed out" in person("logout")[1]
    assert "needs a token" in person("whoami")[1]
    assert "not signed in" in person("logout")[1]


def test_many_commands_at_once_renew_a_token_once(person: Person, provider: Provider) -> None:
    provider.polls_before_yes, provider.seconds = 0, 30
    try:
        assert person("login")[0] == 0  # which asks with the new token, and 30 s are too few to use it
        provider.seconds, before = 600, provider.renewed
        with ThreadPoolExecutor(4) as together:
            found = list(together.map(lambda _: person("whoami"), range(4)))
    finally:
        provider.seconds = 600
    assert [code for code, _ in found] == [0] * 4
    assert provider.renewed - before == 1


def test_who_may_come_no_more_is_told_to_sign_in_again(person: Person, provider: Provider) -> None:
    provider.polls_before_yes = 0
    assert person("login")[0] == 0
    known = json.loads(person.file.read_text())
    for each in known.values():
        each["expires_at"] = 0
    person.file.write_text(json.dumps(known))
    provider.refresh_tokens.clear()
    code, told = person("whoami")
    assert (code, "Sign in again" in told) == (1, True)
    assert person("login")[0] == 0


def over(person: Person) -> None:
    known = json.loads(person.file.read_text())
    person.file.write_text(json.dumps({at: {**each, "expires_at": 0} for at, each in known.items()}))


@pytest.mark.lane("server")
def test_a_provider_that_is_away_for_a_moment_ends_no_sign_in(person: Person, provider: Provider) -> None:
    provider.polls_before_yes = 0
    assert person("login")[0] == 0
    over(person)
    provider.is_away = True
    try:
        code, shown = person("whoami")
    finally:
        provider.is_away = False
    assert (code, "503" in shown, "no more" in shown) == (1, True, False)
    assert person("whoami")[0] == 0


@pytest.mark.lane("server")
def test_a_login_that_fails_leaves_the_earlier_one(person: Person, provider: Provider) -> None:
    provider.polls_before_yes = 0
    assert person("login")[0] == 0
    provider.is_away = True
    try:
        assert person("login")[0] == 1
    finally:
        provider.is_away = False
    assert person("whoami")[0] == 0


@pytest.mark.lane("server")
def test_seconds_may_come_as_text(person: Person, provider: Provider) -> None:
    provider.polls_before_yes, provider.are_seconds_text = 0, True
    try:
        assert person("login")[0] == 0
    finally:
        provider.are_seconds_text = False
    assert person("whoami")[0] == 0


def test_a_server_without_a_provider_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with running_server(tmp_path / "state") as plain:
        code, told = Person(plain, tmp_path / "home")("login")
    assert (code, "API key" in told) == (1, True)
