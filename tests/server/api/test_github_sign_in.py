"""Signing in at GitHub: its organisations are tenants by rule, and only its word counts."""

import base64
import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest

from tests.server.api.test_keys import TOKEN, client_of
from tests.support.forking import ran
from tests.support.http_helpers import assert_problem
from tests.support.patience import stretched
from tests.support.providers import served_by
from tests.support.serving import RunningServer, clean_env, running_server

pytestmark = pytest.mark.lane("server")
CLIENT, SECRET = "Iv1.client", "github-secret"
RULES = [
    {"claim": "memberships", "matches": "(?P<org>[a-z0-9-]+):admin", "tenant": "{org}", "role": "admin"},
    {"claim": "memberships", "matches": "(?P<org>[a-z0-9-]+):member", "tenant": "{org}", "role": "operator"},
]


class GitHub:
    """What of GitHub's documented endpoints a sign-in needs."""

    def __init__(self) -> None:
        self.url = ""
        self.codes: dict[str, dict[str, str]] = {}
        self.user: dict[str, Any] = {}
        self.memberships: list[dict[str, Any]] = []
        self.is_away = False
        self.asked: list[str] = []

    def came(self, asked: str) -> str:
        """Somebody says yes where a server sent their browser; the address that the browser is sent back to."""
        query = dict(parse_qsl(urlsplit(asked).query))
        assert (query["client_id"], query["scope"]) == (CLIENT, "read:org")
        code = f"c{len(self.asked)}-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token_for(self, form: dict[str, str]) -> dict[str, Any]:
        known = self.codes.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if known is None or known["code_challenge"] != proof or form["redirect_uri"] != known["redirect_uri"]:
            return {"error": "bad_verification_code", "error_description": "The code passed is incorrect or expired."}
        if (form["client_id"], form["client_secret"]) != (CLIENT, SECRET):
            return {"error": "incorrect_client_credentials"}
        return {"access_token": "gho_token", "scope": "read:org", "token_type": "bearer"}

    def read(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if path == "/api/user":
            return 200, self.user
        if path == "/api/user/memberships/orgs" and query["state"] == ["active"]:
            page, size = int(query["page"][0]), int(query["per_page"][0])
            return 200, self.memberships[(page - 1) * size : page * size]
        return 404, {"message": "Not Found"}


def member(org: str, role: str = "member", state: str = "active") -> dict[str, Any]:
    return {"state": state, "role": role, "organization": {"login": org, "id": 7}}


@pytest.fixture(scope="module")
def github() -> Iterator[GitHub]:
    known = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked.append(self.path)
            parts = urlsplit(self.path)
            is_known = self.headers["authorization"] == "Bearer gho_token"
            status, content = known.read(parts.path, parse_qs(parts.query)) if is_known else (401, {})
            self.tell(503 if known.is_away else status, content)

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
            assert self.path == "/login/oauth/access_token"
            assert "application/json" in self.headers["accept"]  # else GitHub answers a form
            self.tell(503 if known.is_away else 200, known.token_for(form))

        def tell(self, status: int, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    with served_by(Handler) as port:
        known.url = f"http://127.0.0.1:{port}"
        yield known


def settings_of(github: GitHub) -> tuple[str, ...]:
    client = ("--github-client-id", CLIENT, "--github-client-secret", SECRET)
    places = ("--github-url", github.url, "--github-api-url", f"{github.url}/api")
    return ("--token", TOKEN, *client, *places, "--github-claims", json.dumps(RULES))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, github: GitHub) -> Iterator[RunningServer]:
    state = tmp_path_factory.mktemp("github") / "state"
    with running_server(state, *settings_of(github)) as running, client_of(running, TOKEN) as token:
        for tenant in ("acme", "lab"):
            assert token.post("/tenants", json={"name": tenant}).status_code == 201
        yield running


@pytest.fixture
def browser(server: RunningServer, github: GitHub) -> Iterator[httpx.Client]:
    github.user = {"login": "Anna-B", "id": 4711, "name": "Anna B."}
    github.memberships = [member("Acme", "admin"), member("lab"), member("nowhere"), member("old", state="pending")]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def back(browser: httpx.Client, github: GitHub) -> str:
    return github.came(browser.get("/api/v1/sign-in/github").headers["location"])


def test_organisations_are_tenants_and_people_choose_among_theirs(browser: httpx.Client, github: GitHub) -> None:
    assert browser.get(back(browser, github)).status_code == 303
    me = browser.get("/api/v1/me").json()
    assert (me["actor"], me["name"], me["tenant"], me["role"]) == ("github:4711", "Anna B.", "acme", "admin")
    assert {each["tenant"] for each in me["projects"]} == {"acme", "lab"}
    lab = browser.get("/api/v1/me", headers={"ostler-project": "lab/default"}).json()
    assert (lab["tenant"], lab["role"]) == ("lab", "operator")
    assert_problem(browser.get("/api/v1/me", headers={"ostler-project": "default/default"}), "not_found")


def test_members_of_many_organisations_are_read_to_the_end(browser: httpx.Client, github: GitHub) -> None:
    github.memberships = [*(member(f"org-{number}") for number in range(150)), member("lab")]
    assert browser.get(back(browser, github)).status_code == 303
    assert browser.get("/api/v1/me").json()["tenant"] == "lab"


def test_signing_out_ends_it_here(server: RunningServer, browser: httpx.Client, github: GitHub) -> None:
    browser.get(back(browser, github))
    left = browser.post("/api/v1/sign-out", headers={"origin": server.url})
    assert (left.status_code, left.json()) == (200, {})
    assert_problem(browser.get("/api/v1/me"), "token_invalid")


def test_a_code_that_was_used_is_refused(browser: httpx.Client, github: GitHub) -> None:
    place = back(browser, github)
    github.codes.clear()
    assert "incorrect or expired" in assert_problem(browser.get(place), "sign_in_failed")["detail"]


def test_who_is_in_no_organisation_of_ours_is_told_so(browser: httpx.Client, github: GitHub) -> None:
    github.memberships = [member("nowhere")]
    detail = assert_problem(browser.get(back(browser, github)), "no_role")["detail"]
    assert ("github:4711" in detail, "github_claims" in detail, "nowhere" in detail) == (True, True, False)


def test_github_that_is_away_is_told(browser: httpx.Client, github: GitHub) -> None:
    place = back(browser, github)
    github.is_away = True
    try:
        assert "GitHub" in assert_problem(browser.get(place), "provider_away")["detail"]
    finally:
        github.is_away = False


def test_an_answer_without_a_person_is_not_believed(browser: httpx.Client, github: GitHub) -> None:
    github.user = {"message": "Hello"}
    assert_problem(browser.get(back(browser, github)), "provider_away")


def test_a_server_needs_no_openid_provider_for_that(server: RunningServer) -> None:
    told = httpx.get(f"{server.url}/api/v1/providers").json()
    assert (told["items"], [each["path"] for each in told["browser"]]) == ([], ["/api/v1/sign-in/github"])


@pytest.mark.parametrize("missing", ["--github-client-id", "--github-client-secret", "--github-claims"])
def test_a_setting_alone_is_refused_at_the_start(tmp_path: Path, github: GitHub, missing: str) -> None:
    given = settings_of(github)
    at = given.index(missing)
    done = ran(
        ("serve", *given[:at], *given[at + 2 :]), env=clean_env(tmp_path / "home"), cwd=tmp_path, seconds=stretched(60)
    )
    assert (done.returncode, missing.strip("-").replace("-", "_") in done.stderr) == (2, True)
