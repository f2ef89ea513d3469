"""Who may call the server: tokens, host names, web origins, and addresses other machines can reach."""

import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import Operation, assert_problem, operations
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server

TOKEN = "open sesame ÿ"
OPEN = (
    *("system.health", "system.ready", "system.providers", "sign-in.begin", "sign-in.finish"),
    *("catalogue.send-upload", "runner.register", "triggers.deliver"),
)
CLOSED = [operation for operation in operations() if str(operation) not in OPEN]
PAGE = "https://tea.example"
PREFLIGHT = {"origin": PAGE, "access-control-request-method": "POST"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a token that one web page, and clients by one more name, may call."""
    more = ("--token", TOKEN, "--cors-origin", PAGE, "--allowed-host", "Ostler.test")
    with running_server(tmp_path_factory.mktemp("guarded") / "state", *more) as running:
        yield running


@pytest.fixture(scope="module")
def guest(guarded: RunningServer) -> Iterator[httpx.Client]:
    """A client without a token."""
    with httpx.Client(base_url=f"{guarded.url}/api/v1", timeout=60) as client:
        yield client


def _authorization(value: str) -> dict[bytes, bytes]:
    return {b"authorization": value.encode()}


@pytest.mark.parametrize("operation", CLOSED, ids=str)
def test_every_operation_but_health_needs_the_token(guest: httpx.Client, operation: Operation) -> None:
    answer = guest.request(operation.method, operation.url(), json=operation.body)
    assert "needs a token" in assert_problem(answer, "token_invalid")["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("path", ["/api/v1/healthz", "/api/v1/readyz", "/healthz", "/readyz"])
def test_health_needs_no_token(guarded: RunningServer, path: str) -> None:
    assert httpx.get(guarded.url + path).status_code == 200


@pytest.mark.parametrize("path", ["/nowhere", "/api/v1/x/%2e%2e/healthz", "/HEALTHZ"])
def test_a_guest_does_not_even_learn_which_paths_exist(guarded: RunningServer, path: str) -> None:
    assert httpx.get(httpx.URL(guarded.url).copy_with(raw_path=path.encode())).status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "ApiKey", "APIKEY"])
def test_the_token_opens_the_api(guest: httpx.Client, scheme: str) -> None:
    assert guest.get("/version", headers=_authorization(f"{scheme} {TOKEN}")).status_code == 200


@pytest.mark.parametrize("header", ["Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[1:]}", "ApiKey nope"])
def test_a_wrong_token_is_refused(guest: httpx.Client, header: str) -> None:
    assert_problem(guest.get("/version", headers=_authorization(header)), "token_invalid")


@pytest.mark.parametrize("header", [f"Basic {TOKEN}", TOKEN, ""])
def test_a_token_in_another_scheme_is_no_token(guest: httpx.Client, header: str) -> None:
    assert_problem(guest.get("/version", headers=_authorization(header)), "token_invalid")


def test_a_token_is_never_written_to_the_log(guarded: RunningServer, guest: httpx.Client) -> None:
    guest.get("/version", headers=_authorization(f"Bearer {TOKEN}"))
    guest.get("/version", headers=_authorization("Bearer nearly right"))
    written = guarded.stdout.read_text() + guarded.stderr.read_text()
    assert TOKEN not in written
    assert "nearly right" not in written


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]", "ostler.test", "OSTLER.test:80"])
def test_the_server_answers_to_its_own_names(guest: httpx.Client, host: str) -> None:
    assert guest.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::1", "a b"]
)
def test_a_foreign_host_name_is_refused_so_that_no_site_can_rebind_its_own(guest: httpx.Client, host: str) -> None:
    assert "Host" in assert_problem(guest.get("/healthz", headers={"host": host}), "foreign_origin")["detail"]


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization"])
def test_who_asks_is_said_once(guest: httpx.Client, name: str) -> None:
    connection = HTTPConnection(guest.base_url.host, guest.base_url.port, timeout=60)
    connection.putrequest("GET", "/healthz", skip_host=name == "Host")
    for value in ("127.0.0.1", "localhost"):
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, f"The header {name} is there twice" in answer.read().decode()) == (400, True)
    connection.close()


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", f"{PAGE}.evil.example", "http://[", "http://tea.example"]
)
def test_a_foreign_page_is_refused_and_told_nothing(guest: httpx.Client, origin: str) -> None:
    answer = guest.get("/healthz", headers={"origin": origin})
    assert "Origin" in assert_problem(answer, "foreign_origin")["detail"]
    assert "access-control-allow-origin" not in answer.headers


def test_the_servers_own_page_may_call_it(guarded: RunningServer, guest: httpx.Client) -> None:
    assert guest.get("/healthz", headers={"origin": guarded.url}).status_code == 200


def test_an_allowed_page_hears_what_it_may_send(guest: httpx.Client) -> None:
    answer = guest.options("/sessions", headers=PREFLIGHT)
    assert (answer.status_code, answer.text) == (204, "")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "GET, POST, PUT, PATCH, DELETE"
    assert "idempotency-key" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["vary"] == "origin"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/healthz", {}, 200), ("/version", {}, 401), ("/nowhere", _authorization(f"Bearer {TOKEN}"), 404)],
    ids=["answer", "refusal", "problem"],
)
def test_an_allowed_page_can_read_every_answer(
    guest: httpx.Client, path: str, headers: dict[bytes, bytes], status: int
) -> None:
    answer = guest.get(path, headers={**headers, b"origin": PAGE.encode()})
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "ostler-receipt" in answer.headers["access-control-expose-headers"]


def test_an_allowed_page_can_read_a_repeated_answer(guest: httpx.Client) -> None:
    headers = {b"origin": PAGE.encode(), b"idempotency-key": b"page", **_authorization(f"Bearer {TOKEN}")}
    first, again = (guest.post("/sessions", json={"agent": "mock"}, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["access-control-allow-origin"] == PAGE


def test_without_configured_origins_no_page_is_let_in_and_no_header_speaks_of_them(api: httpx.Client) -> None:
    assert_problem(api.options("/sessions", headers=PREFLIGHT), "foreign_origin")
    assert not [name for name in api.get("/version").headers if name.startswith("access-control")]


def test_origins_can_be_open_to_all_with_credentials_when_there_is_a_token(state_dir: Path) -> None:
    more = ("--token", "t", "--cors-origin", "*", "--cors-credentials", "--cors-method", "GET")
    with running_server(state_dir, *more) as server:
        answer = httpx.options(f"{server.url}/api/v1/sessions", headers=PREFLIGHT)
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-allow-methods"] == "GET"


def test_no_token_overrides_a_configured_token(state_dir: Path) -> None:
    with running_server(state_dir, "--no-token", env={"OSTLER_TOKEN": "forgotten"}) as server:
        assert httpx.get(f"{server.url}/api/v1/version").status_code == 200


@pytest.mark.parametrize(
    ("host", "arguments"),
    [
        ("0.0.0.0", ()),
        ("::", ()),
        ("ostler.test", ()),
        ("0.0.0.0", ("--token", "")),
        ("0.0.0.0", ("--token", "  ")),
        ("0.0.0.0", ("--token", "t", "--no-token")),
    ],
)
def test_an_address_that_others_can_reach_needs_a_token(tmp_path: Path, host: str, arguments: tuple[str, ...]) -> None:
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(tmp_path / "state"), "--host", host, *arguments]
    ended = subprocess.run(command, env=clean_env(tmp_path), capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"Error: Setting host={host}: ")
    assert "--token" in line


def test_every_page_without_a_token_is_refused_at_start(tmp_path: Path) -> None:
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(tmp_path / "state"), "--cors-origin", "*"]
    ended = subprocess.run(command, env=clean_env(tmp_path), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line == "Error: Setting cors_origins=*: needs a token; give one with --token."


@pytest.mark.parametrize(
    "arguments", [("--token", "t"), ("--no-token", "--allow-open-network")], ids=["with a token", "risk accepted"]
)
def test_a_server_for_other_machines_answers_to_any_name(state_dir: Path, arguments: tuple[str, ...]) -> None:
    with running_server(state_dir, "--host", "0.0.0.0", *arguments) as server:
        headers = {"host": "ostler.example", "authorization": "Bearer t"}
        answer = httpx.get(f"http://127.0.0.1:{server.port}/api/v1/version", headers=headers)
        wait_until(lambda: "Not encrypted" in server.stdout.read_text(), what="the word about TLS")
        (line,) = (line for line in server.stdout.read_text().splitlines() if line.startswith("Not encrypted"))
    assert answer.status_code == 200
    assert "prompts and files of clients" in line
    assert ("tokens" in line) is ("--token" in arguments)
    assert "--tls-cert" in line


def test_a_server_for_this_machine_alone_says_nothing_of_encryption(server: RunningServer) -> None:
    wait_until(lambda: "State: " in server.stdout.read_text(), what="the last word of the start")
    assert "encrypted" not in server.stdout.read_text()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("path", "mode", "dest"),
    [
        ("/api/v1/version", "no-cors", "image"),
        ("/api/v1/git/refs?url=https://example.com", "navigate", "document"),
        ("/assets/index.js", "no-cors", "script"),
        ("/", "navigate", "iframe"),
        ("/healthz", "no-cors", "image"),
    ],
)
def test_a_foreign_page_cannot_ask_without_saying_who_it_is(
    server: RunningServer, path: str, mode: str, dest: str, site: str
) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    found = assert_problem(httpx.get(server.url + path, headers=headers), "foreign_origin")
    assert "Sec-Fetch-Site" in found["detail"]


@pytest.mark.parametrize(
    ("path", "site", "mode", "dest"),
    [
        ("/", "cross-site", "navigate", "document"),
        ("/sessions/x", "cross-site", "navigate", "document"),
        ("/api/v1/version", "same-origin", "cors", "empty"),
        ("/api/v1/version", "none", "navigate", "document"),
    ],
)
def test_a_visit_and_the_servers_own_page_are_welcome(
    server: RunningServer, path: str, site: str, mode: str, dest: str
) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest, "accept": "text/html,*/*"}
    assert httpx.get(server.url + path, headers=headers).status_code == 200


def test_an_allowed_page_may_ask_from_another_site(guest: httpx.Client) -> None:
    headers = {"origin": PAGE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
    assert guest.get("/healthz", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/version", "/api/v1/nowhere", "/healthz"])
def test_no_answer_can_be_put_into_a_foreign_page(server: RunningServer, path: str) -> None:
    assert httpx.get(server.url + path).headers["cross-origin-resource-policy"] == "same-origin"


def test_wrong_tokens_are_refused_for_a_while_when_they_are_many(state_dir: Path) -> None:
    with (
        running_server(state_dir, "--token", "right", "--max-wrong-tokens", "8") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        wrong, right = _authorization("Bearer wrong"), _authorization("Bearer right")
        for _ in range(8):
            assert_problem(client.get("/version", headers=wrong), "token_invalid")
        for headers in (wrong, right):  # it might be the next guess
            refused = client.get("/version", headers=headers)
            assert_problem(refused, "too_many_wrong_tokens")
            assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert_problem(client.get("/version"), "token_invalid")
        assert client.get("/healthz").status_code == 200


def test_a_right_token_is_not_locked_out_by_a_neighbour(state_dir: Path) -> None:
    with (
        running_server(state_dir, "--token", "right", "--max-wrong-tokens", "8") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        wrong, right = _authorization("Bearer wrong"), _authorization("Bearer right")
        assert client.get("/version", headers=right).status_code == 200
        statuses = [client.get("/version", headers=wrong).status_code for _ in range(12)]
        assert statuses == [401] * 8 + [429] * 4
        assert client.get("/version", headers=right).status_code == 200
