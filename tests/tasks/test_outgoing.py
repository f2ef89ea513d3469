"""What a server calls that others named: nothing of its own machine or network, unless the operator says so."""

import base64
import hmac
import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.runner.delivery.orders import carry_out
from ostler.runner.workspaces.orders import GitSource
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.provisioning import DeliveryOrder
from ostler.wire.workspaces import RepoCredential
from tests.support.http_helpers import assert_problem
from tests.support.ordering import Json, done, finished, order, task, task_server
from tests.support.patience import wait_until
from tests.support.places import LOOPBACK, git, make_repository, opened
from tests.support.places import order as workspace_order

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
HOSTS = ["127.0.0.1", "localhost", "2130706433", "127.1", "[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:7f00:1]"]
HINT = "`--allowed-address 127.0.0.1` (setting allowed_addresses)"


@pytest.fixture(scope="module")
def default_api(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[httpx.Client]:
    """A server whose operator names no address, but every protocol."""
    env = {"OSTLER_ALLOWED_ADDRESSES": "", "OSTLER_REPOSITORY_PROTOCOLS": "https,http,ssh"}
    state = tmp_path_factory.mktemp("default") / "state"
    with task_server(state, repository.parent, env=env) as (_, api):
        yield api


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_repositories_are_not_looked_for_inside(default_api: httpx.Client, scheme: str, host: str) -> None:
    url = f"{scheme}://{host}:1/team/project.git"
    for answer in (
        default_api.get("/git/refs", params={"url": url}),
        default_api.post("/sessions", json={"agent": "mock", "repo": {"url": url}}),
        default_api.post(
            "/tasks", json={"prompt": "x", "agent": {"type": "mock"}, "repo": {"mode": "git", "url": url}}
        ),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.json()["code"] in {"address_refused", "repository_refused"}


@pytest.mark.parametrize("host", HOSTS)
def test_webhooks_providers_and_mcp_servers_are_not_looked_for_inside(
    default_api: httpx.Client, host: str, repository: Path
) -> None:
    url = f"http://{host}:1/x"
    hooks = [{"event": "session.ended", "url": url}]
    provider = {"type": "openai", "baseUrl": url}
    told = {
        "webhooks[0].url": default_api.post("/tasks", json=task("mock: say hi", repository, webhooks=hooks)),
        "provider.baseUrl": default_api.post("/sessions", json={"agent": "mock", "provider": provider}),
        "mcpServers.x.url": default_api.post(
            "/sessions", json={"agent": "mock", "mcpServers": {"x": {"type": "http", "url": url}}}
        ),
    }
    for field, answer in told.items():
        assert list(assert_problem(answer, "address_refused")["errors"]) == [field]


def test_who_runs_a_model_on_this_machine_is_told_the_setting(default_api: httpx.Client) -> None:
    provider = {"type": "openai", "baseUrl": "http://127.0.0.1:11434"}
    answer = default_api.post("/sessions", json={"agent": "mock", "provider": provider})
    assert HINT in answer.json()["detail"]
    assert "127.0.0.1:11434" in answer.json()["detail"]


def test_a_host_that_nobody_knows_is_no_provider(default_api: httpx.Client) -> None:
    provider = {"type": "openai", "base_url": "http://nobody.invalid"}
    assert_problem(
        default_api.post("/sessions", json={"agent": "mock", "provider": provider}),
        "unprocessable",
        field="provider",
    )


async def test_a_submodule_is_not_looked_for_inside(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    library = make_repository(tmp_path / "origin" / "library")
    git(project, "-c", "protocol.allow=always", "submodule", "add", "-q", str(library), "inner")
    git(project, "config", "-f", ".gitmodules", "submodule.inner.url", "http://127.0.0.1:1/library.git")
    git(project, "commit", "-qam", "inner")
    policy = Policy(folders=(str(tmp_path),), protocols=("http",))
    async with opened(tmp_path / "state", policy=policy) as service:
        made = await service.create(workspace_order(project))
    assert [(each.path, HINT in (each.why_not or "")) for each in made.submodules] == [("inner", True)]


async def test_git_connects_to_the_address_that_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only our own look at the name finds the host, so git can only have it from us."""
    project = make_repository(tmp_path / "project")
    git(project, "update-server-info")
    real, looked_up = socket.getaddrinfo, list[str]()

    def rebinding(host: str, *args: Any, **more: Any) -> Any:
        looked_up.append(host)
        return real("127.0.0.1" if host == "shifty.test" else host, *args, **more)

    with _files(tmp_path) as port:
        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        policy = Policy(protocols=("http",), addresses=LOOPBACK)
        async with opened(tmp_path / "state", policy=policy) as service:
            found = await service.refs(GitSource(url=f"http://shifty.test:{port}/project/.git"))
    assert "main" in {ref.name for ref in found.refs}
    assert looked_up.count("shifty.test") == 1


@contextmanager
def _files(folder: Path) -> Iterator[int]:
    """A folder over HTTP, by its own process."""
    command = ["python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().split(" port ")[1].split()[0])
        try:
            yield port
        finally:
            server.kill()


async def test_a_forge_is_not_looked_for_inside(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "team" / "project")
    policy = Policy(folders=(str(tmp_path),), protocols=("http",))
    async with opened(tmp_path / "state", policy=policy) as service:
        made = await service.create(workspace_order(project))
        snapshot = await service.snapshot(made.id, "end")
        wanted = DeliveryOrder(
            workspace=made.id,
            snapshot=snapshot.id,
            mode="pr",
            branch="b",
            title="t",
            body="b",
            message="m",
            target="main",
            credential=RepoCredential(token="tok-0123456789"),
            forge="gitea",
            api_url="http://127.0.0.1:1",
        )
        with pytest.raises(Exception, match=re.escape(HINT)):
            await carry_out(service, policy, wanted)


class Hook:
    """An address on loopback that answers as it is told, and what it heard."""

    def __init__(self, *answers: int, endless: bool = False) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self._left = list(answers)
        self._endless = endless

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one call."""
        body = handler.rfile.read(int(handler.headers["content-length"]))
        self.calls.append(({name.lower(): value for name, value in handler.headers.items()}, body))
        handler.send_response(self._left.pop(0) if len(self._left) > 1 else self._left[0])
        handler.send_header("location", "/elsewhere")
        handler.end_headers()
        if self._endless:
            self._pour(handler)

    def _pour(self, handler: BaseHTTPRequestHandler) -> None:
        try:
            for _ in range(6400):
                handler.wfile.write(b"x" * 65536)
        except OSError:
            return

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Its address, while it listens."""
        take = self.take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                take(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook"
        finally:
            server.shutdown()
            server.server_close()
            thread.join(60)


def told(api: httpx.Client, repository: Path, url: str, **more: str) -> str:
    """A finished task whose end is told to an address."""
    session = order(api, task("mock: say hi", repository, webhooks=[{"event": "session.ended", "url": url, **more}]))
    finished(api, session)
    return session


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """What every receiver does."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    fresh = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return fresh and any(hmac.compare_digest(expected, each) for each in headers["webhook-signature"].split())


def test_a_webhook_is_signed_by_the_servers_secret_or_its_own(repository: Path, state_dir: Path) -> None:
    hook = Hook(500, 200)
    with (
        hook.listening() as url,
        task_server(state_dir, repository.parent, "--webhook-secret", SECRET) as (server, api),
    ):
        first = told(api, repository, url)
        wait_until(lambda: len(hook.calls) == 2, what="it was tried again")
        second = told(api, repository, url, secret=OTHER)
        wait_until(lambda: len(hook.calls) == 3, what="the second was told")
        seen = "".join(api.get(f"/{kind}/{second}").text for kind in ("tasks", "sessions"))
        seen += api.get(f"/sessions/{second}/events").text + server.stderr.read_text() + server.stdout.read_text()
    assert [headers["webhook-id"] for headers, _ in hook.calls] == [f"{first}-0", f"{first}-0", f"{second}-0"]
    assert [verified(SECRET, *call) for call in hook.calls] == [True, True, False]
    assert verified(OTHER, *hook.calls[2])
    assert not verified(SECRET, hook.calls[0][0], hook.calls[0][1] + b" ")
    assert OTHER not in seen
    assert SECRET not in seen


def test_a_webhook_that_names_no_secret_gets_one_of_its_own_which_is_told_once(
    api: httpx.Client, repository: Path
) -> None:
    hook = Hook(200)
    with hook.listening() as url:
        hooks = [
            {"event": "session.ended", "url": url},
            {"event": "session.completed", "url": url, "secret": OTHER},
            {"event": "session.ended", "url": url},
        ]
        answer = api.post("/tasks", json=task("mock: say hi", repository, webhooks=hooks))
        session = answer.json()["id"]
        finished(api, session)
        wait_until(lambda: len(hook.calls) == 3, what="all were told")
    made = answer.json()["webhooks"]
    assert [(each["event"], each["url"]) for each in made] == [("session.ended", url)] * 2
    secrets = {f"{session}-0": made[0]["secret"], f"{session}-1": OTHER, f"{session}-2": made[1]["secret"]}
    assert len(set(secrets.values())) == 3
    assert [verified(secrets[headers["webhook-id"]], headers, body) for headers, body in hook.calls] == [True] * 3
    seen = "".join(api.get(f"/{kind}/{session}").text for kind in ("tasks", "sessions"))
    assert [each["secret"] for each in made if each["secret"] in seen + str(hook.calls)] == []


def test_the_signature_is_the_one_of_the_standard() -> None:
    headers = {"webhook-id": "msg_01OSTLER", "webhook-timestamp": "1790000000"}
    body = '{"type":"push","id":1,"text":"grüß"}'.encode()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(bytes(range(32)), signed, "sha256")
    assert base64.b64encode(digest).decode() == "WyxJyrO7m09DJOHsl1l/Tc2kzExOrK3mEHBscMQAG84="


@pytest.mark.parametrize(
    "secret", ["", "short", "whsec_", "whsec_!!!", "whsec_AAAA", base64.b64encode(b"x" * 32).decode()]
)
def test_a_secret_that_is_none_is_refused_and_not_repeated(api: httpx.Client, repository: Path, secret: str) -> None:
    hooks = [{"event": "session.ended", "url": "http://127.0.0.1:1/", "secret": secret}]
    answer = api.post("/tasks", json=task("mock: say hi", repository, webhooks=hooks))
    assert_problem(answer, "invalid_request", field="webhooks")


def test_a_redirect_of_a_webhook_is_a_failure(api: httpx.Client, repository: Path) -> None:
    hook = Hook(302, 200)
    with hook.listening() as url:
        told(api, repository, url)
        wait_until(lambda: len(hook.calls) == 2, what="it was tried again")
    bodies: list[Json] = [json.loads(body) for _, body in hook.calls]
    assert bodies[0] == bodies[1]


def resident(pid: int) -> int:
    """The memory that a process has, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def test_an_endless_answer_of_a_webhook_takes_no_memory(repository: Path, state_dir: Path) -> None:
    hook = Hook(200, endless=True)
    with hook.listening() as url, task_server(state_dir, repository.parent) as (server, api):
        done(api, task("mock: say hi", repository))
        before = resident(server.process.pid)
        told(api, repository, url)
        wait_until(lambda: len(hook.calls) == 1, what="it was told")
        assert api.get("/sessions").status_code == 200
        assert resident(server.process.pid) - before < 100 * 2**20
