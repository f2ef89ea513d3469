"""How a runner joins a server and leaves it: tokens, keys, labels, versions, and what everybody is shown of it."""

import asyncio
import http.server
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import pytest

from ostler.base.errors.runners import LinkLost, RunnerRefused
from ostler.link.channel import LINK_VERSION, Hello, Welcome, encode
from ostler.link.keys import hashed
from ostler.link.refusals import refusal
from ostler.link.socket import ClientSocket, dialled, greet
from tests.support.hosts import runners_of, started_runner, token_of
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server
from tests.support.stalling_proxy import Proxy

MOCK = {"agent": {"type": "mock"}, "prompt": "mock: say done"}
HELLO = Hello(link=LINK_VERSION, version="1", boot="b", labels={}, slots=1, os="linux", arch="arm", hostname="h")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("server") / "state", "--runner-beat-seconds", "0.5") as running:
        yield running


def registered(server: RunningServer, key: str, **wanted: object) -> str:
    """A runner that is known by this key; its id."""
    answer = httpx.post(
        f"{server.url}/api/v1/runners/register",
        json={"keyHash": hashed(key), "name": key},
        headers={"Authorization": f"Bearer {token_of(server.url, **wanted)}"},
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


class _Refusing(http.server.BaseHTTPRequestHandler):
    """A proxy that wants a login of its own."""

    def do_GET(self) -> None:
        self.send_error(403)

    do_POST = do_GET  # noqa: N815  the name that the base class looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def refusing_proxy() -> Iterator[str]:
    """Where somebody answers that is no server of ours."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as answering:
        threading.Thread(target=answering.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{answering.server_port}"
        answering.shutdown()


async def every_message(socket: ClientSocket) -> None:
    while await socket.receive() is not None:
        continue


async def greeted(server: RunningServer, key: str, hello: Hello) -> Welcome:
    async with dialled(server.url, key, None) as socket:
        return await greet(socket, hello)


def test_a_runner_joins_with_a_token_and_comes_back_with_its_key(server: RunningServer, tmp_path: Path) -> None:
    state = tmp_path / "joins"
    token = token_of(server.url, labels={"gpu": "none"})
    args = ("--server", server.url, "--name", "joins", "--label", "disk=big", "--slots", "3")
    with started_runner(state, *args, token=token) as host:
        runner_id = host.wait_linked()
        wait_until(lambda: runners_of(server.url).get("joins", {}).get("health") == "ok", what="it is shown as linked")
        shown = runners_of(server.url)["joins"]
        assert (shown["id"], shown["labels"]) == (runner_id, {"gpu": "none", "disk": "big"})
        assert (shown["slots"], shown["used"], shown["draining"]) == (3, 0, False)
        assert shown["snapshotCapabilities"]
        host.process.send_signal(signal.SIGTERM)
        assert host.wait_ended()[0] == 0
    wait_until(lambda: runners_of(server.url)["joins"]["health"] == "lost", what="its goodbye is heard")
    assert stat.S_IMODE((state / "runner.json").stat().st_mode) == 0o600
    with started_runner(state, *args) as host:
        assert host.wait_linked(2) == runner_id


def test_a_token_is_good_for_as_many_runners_as_it_says(server: RunningServer, tmp_path: Path) -> None:
    token = token_of(server.url, uses=1)
    with started_runner(tmp_path / "first", "--server", server.url, token=token) as host:
        host.wait_linked()
    with started_runner(tmp_path / "second", "--server", server.url, token=token) as host:
        assert host.wait_ended() == (
            1,
            "Error: The registration token is used up. Make another one with `ostler runners token`.",
        )


@pytest.mark.parametrize(
    ("args", "token", "says"),
    [
        ((), None, "Error: This runner is not registered yet. Make a token with"),
        ((), "rtk_wrong", "Error: There is no such registration token."),
        (("--server", "http://192.0.2.1:1"), "t", "everybody on the way could read the runner's key. Use https"),
        (("--server", "ftp://x"), "t", "Error: Setting server=ftp://x: must be an address such as https://HOST:PORT."),
    ],
    ids=["no token", "wrong token", "no TLS", "no address"],
)
def test_a_runner_that_cannot_join_says_why_in_a_line(
    server: RunningServer, tmp_path: Path, args: tuple[str, ...], token: str | None, says: str
) -> None:
    with started_runner(tmp_path / "state", *(args or ("--server", server.url)), token=token) as host:
        code, line = host.wait_ended()
        assert (code, says in line) == (1, True), line


def test_a_runner_that_is_removed_stops_and_cannot_come_back(server: RunningServer, tmp_path: Path) -> None:
    args = ("--server", server.url, "--name", "removed")
    with started_runner(tmp_path / "removed", *args, token=token_of(server.url)) as host:
        host.wait_linked()
        wait_until(lambda: "removed" in runners_of(server.url), what="it is shown")
        assert httpx.delete(f"{server.url}/api/v1/runners/removed").status_code == 204
        assert host.wait_ended() == (1, "Error: Its key was revoked.")
    with started_runner(tmp_path / "removed", *args) as host:
        code, line = host.wait_ended()
        assert (code, "The runner's key was revoked at" in line) == (1, True), line


def test_the_server_tells_a_runner_of_its_own_from_the_others(server: RunningServer, tmp_path: Path) -> None:
    answer = httpx.delete(f"{server.url}/api/v1/runners/local")
    assert (answer.status_code, answer.json()["code"]) == (501, "not_supported")
    own = httpx.get(f"{server.url}/api/v1/runners/local").json()
    assert own == runners_of(server.url)["local"] | {"lastBeat": own["lastBeat"]}
    command = [*OSTLER, "runners", "get", "local", "--endpoint", server.url]
    shown = subprocess.run(command, env=clean_env(tmp_path), capture_output=True, text=True, check=True)
    assert own["id"] in shown.stdout
    answer = httpx.get(f"{server.url}/api/v1/runners/nobody")
    assert (answer.status_code, answer.json()["code"]) == (404, "runner_not_found")
    answer = httpx.post(f"{server.url}/api/v1/runners/nobody/drain")
    assert (answer.status_code, answer.json()["code"]) == (404, "runner_not_found")


def test_a_runner_that_drains_still_does_when_it_comes_back(server: RunningServer, tmp_path: Path) -> None:
    args = ("--server", server.url, "--name", "drains")
    with started_runner(tmp_path / "drains", *args, token=token_of(server.url)) as host:
        host.wait_linked()
        wait_until(lambda: "drains" in runners_of(server.url), what="it is shown")
        drained = httpx.post(f"{server.url}/api/v1/runners/drains/drain")
        assert (drained.status_code, drained.json()["draining"]) == (200, True)
        host.process.kill()
        host.wait_ended()
    with started_runner(tmp_path / "drains", *args) as host:
        host.wait_linked(2)
        wait_until(lambda: runners_of(server.url)["drains"]["health"] == "ok", what="it is linked again")
        assert runners_of(server.url)["drains"]["draining"]
        assert not httpx.post(f"{server.url}/api/v1/runners/drains/resume").json()["draining"]


def test_two_runners_never_share_a_folder(server: RunningServer, tmp_path: Path) -> None:
    with started_runner(tmp_path / "one", "--server", server.url, token=token_of(server.url)) as host:
        host.wait_linked()
        with started_runner(tmp_path / "one", "--server", server.url) as other:
            code, line = other.wait_ended()
            assert (code, "uses" in line, "--state-dir" in line) == (1, True, True), line


def test_a_server_that_is_not_there_is_tried_again_and_others_in_turn(server: RunningServer, tmp_path: Path) -> None:
    args = ("--server", "http://127.0.0.1:9", "--server", "http://nowhere.invalid", "--server", server.url)
    token = token_of(server.url)
    with started_runner(tmp_path / "turn", *args, "--insecure", token=token) as host:
        host.wait_linked()


def test_a_server_that_hangs_up_is_tried_again(server: RunningServer, tmp_path: Path) -> None:
    with started_runner(tmp_path / "again", "--server", server.url, token=token_of(server.url)) as host:
        host.wait_linked()
    with Proxy(9) as dead:  # takes connections, and ends each at once
        args = ("--server", dead.url, "--server", dead.url, "--server", server.url)
        with started_runner(tmp_path / "again", *args) as host:
            host.wait_linked(2)


def test_a_link_that_is_cut_is_dialled_again(server: RunningServer, tmp_path: Path) -> None:
    args = ("--name", "cut")
    with (
        Proxy(server.port) as way,
        started_runner(tmp_path / "cut", "--server", way.url, *args, token=token_of(server.url)) as host,
    ):
        runner_id = host.wait_linked()
        way.cut()
        assert host.wait_linked(2) == runner_id
        way.stall()
        wait_until(lambda: runners_of(server.url)["cut"]["health"] == "lost", what="the server notices the silence")
        way.resume()
        way.cut()
        assert host.wait_linked(3) == runner_id


@pytest.mark.parametrize("link", [LINK_VERSION - 1, LINK_VERSION + 1], ids=["older", "newer"])
async def test_another_version_of_the_link_is_refused_with_what_to_upgrade(server: RunningServer, link: int) -> None:
    registered(server, f"version-{link}")
    older = "the runner" if link < LINK_VERSION else "the server"
    with pytest.raises(RunnerRefused, match=f"speaks version {link} of the link, .*: upgrade {older}"):
        await greeted(server, f"version-{link}", msgspec.structs.replace(HELLO, link=link))


async def test_a_label_that_the_token_fixed_cannot_be_claimed_otherwise(server: RunningServer) -> None:
    registered(server, "labels", labels={"gpu": "none"})
    for labels in ({"gpu": "a100"}, {"tenant": "other"}):
        with pytest.raises(RunnerRefused, match="may not claim the label"):
            await greeted(server, "labels", msgspec.structs.replace(HELLO, labels=labels))


async def test_a_key_that_nobody_knows_is_refused_before_anything_is_said(server: RunningServer) -> None:
    with pytest.raises(RunnerRefused, match="does not know the runner's key"):
        await greeted(server, "unknown", HELLO)


async def test_an_end_that_says_nothing_or_nonsense_is_sent_away(server: RunningServer) -> None:
    registered(server, "nonsense")
    async with dialled(server.url, "nonsense", None) as socket:
        await socket.send(b"\xc1")
        with pytest.raises(RunnerRefused, match="say hello first"):
            await greet(socket, HELLO)
    async with dialled(server.url, "nonsense", None) as socket:
        await socket.send(msgspec.msgpack.encode({"type": "hello", "link": LINK_VERSION, "version": 1}))
        with pytest.raises(RunnerRefused, match="cannot be read"):
            await greet(socket, HELLO)
    async with dialled(server.url, "nonsense", None) as socket:
        await greet(socket, HELLO)
        await socket.send(encode(HELLO) + b"more")
        with pytest.raises(LinkLost):
            await asyncio.wait_for(every_message(socket), stretched(60))
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_link_outlives_the_time_that_a_request_may_take(tmp_path: Path) -> None:
    quick = ("--header-timeout-seconds", "0.5", "--keep-alive-seconds", "1", "--runner-beat-seconds", "0.2")
    with running_server(tmp_path / "server" / "state", *quick) as server:
        token = token_of(server.url)
        with started_runner(tmp_path / "far", "--server", server.url, "--name", "far", token=token) as host:
            host.wait_linked()
            begun = datetime.fromisoformat(runners_of(server.url)["far"]["lastBeat"])
            later = begun + timedelta(seconds=3)
            wait_until(
                lambda: datetime.fromisoformat(runners_of(server.url)["far"]["lastBeat"]) > later,
                what="its beats are not heard",
            )
            assert len(host.links) == 1


def test_a_folder_of_a_server_is_none_for_a_runner_and_the_other_way_round(tmp_path: Path) -> None:
    with running_server(tmp_path / "one" / "state") as server:
        token = token_of(server.url)
    with running_server(tmp_path / "two" / "state") as server:
        with started_runner(tmp_path / "one" / "state", "--server", server.url, token=token) as host:
            code, line = host.wait_ended()
        assert (code, "is the folder of a server" in line) == (1, True), line
        with started_runner(tmp_path / "far", "--server", server.url, token=token_of(server.url)) as host:
            host.wait_linked()
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(tmp_path / "far")]
    done = subprocess.run(command, env=clean_env(tmp_path / "home"), capture_output=True, text=True, check=False)
    assert (done.returncode, "is the folder of a runner" in done.stderr) == (1, True), done.stderr


def test_a_new_runner_does_not_take_the_folder_of_an_earlier_one(server: RunningServer, tmp_path: Path) -> None:
    state = tmp_path / "earlier"
    with started_runner(state, "--server", server.url, token=token_of(server.url)) as host:
        host.wait_linked()
    work = state / "sessions" / "ses_1" / "home"
    work.mkdir(parents=True)
    (state / "runner.json").unlink()
    with started_runner(state, "--server", server.url, token=token_of(server.url)) as host:
        code, line = host.wait_ended()
    assert (code, "has files of 1 sessions of an earlier runner" in line, work.exists()) == (1, True, True), line


@pytest.mark.parametrize("body", [b"", b"<html>no</html>", b'{"detail": "no"}', b'{"type": "about:blank"}'])
@pytest.mark.parametrize("status", [401, 403, 404, 502])
def test_only_a_server_of_ours_can_send_a_runner_away(status: int, body: bytes) -> None:
    assert isinstance(refusal("https://x", status, body), LinkLost)


def test_a_proxy_that_refuses_is_tried_again(server: RunningServer, tmp_path: Path) -> None:
    with refusing_proxy() as proxy:
        args = ("--server", proxy, "--server", proxy, "--server", server.url)
        with started_runner(tmp_path / "refused", *args, token=token_of(server.url)) as host:
            host.wait_linked()


@pytest.mark.parametrize("label", ["a\x00b", "two\nlines", "\x1b[31m", "", "x" * 201])
def test_a_label_is_a_word_that_a_terminal_can_show(server: RunningServer, label: str) -> None:
    for labels in ({"name": label}, {label: "value"}):
        answer = httpx.post(f"{server.url}/api/v1/runners/tokens", json={"labels": labels})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("command", [("drain", "local", "--deadline"), ("token", "--expires")])
@pytest.mark.parametrize("time", ["nan", "-5", "soon"])
def test_a_time_that_is_none_is_one_line(
    server: RunningServer, tmp_path: Path, command: tuple[str, ...], time: str
) -> None:
    words = [*OSTLER, "--endpoint", server.url, "runners", *command, time]
    env = clean_env(tmp_path / "home")
    done = subprocess.run(words, capture_output=True, text=True, timeout=stretched(60), check=False, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"'{time}' is no time. Give one such as 90s, 10m or 2h." in done.stderr


def test_the_runner_of_the_server_is_heard_now(server: RunningServer) -> None:
    before = runners_of(server.url)["local"]["lastBeat"]
    assert runners_of(server.url)["local"]["lastBeat"] > before


def test_a_folder_of_a_runners_machine_is_allowed_there(server: RunningServer, tmp_path: Path) -> None:
    (folder := tmp_path / "project").mkdir()
    (folder / "a.txt").write_text("here")
    order = {**MOCK, "repo": {"mode": "folder", "path": str(folder)}, "workspace": {"executionHostId": "keeps-folders"}}
    args = ("--server", server.url, "--name", "keeps-folders")
    closed = {"OSTLER_REPOSITORY_FOLDERS": ""}
    with started_runner(tmp_path / "runner", *args, token=token_of(server.url), env=closed) as host:
        host.wait_linked()
        refused = httpx.post(f"{server.url}/api/v1/tasks", json=order, timeout=60)
        assert refused.json()["detail"].endswith(
            "it is not a folder below one of the allowed local folders of the runner 'keeps-folders'. To allow it, "
            f"start `ostler runner` on its machine with `--repository-folder {folder}` (setting repository_folders)."
        )
    with started_runner(tmp_path / "runner", *args, "--repository-folder", str(folder), env=closed) as host:
        host.wait_linked()
        done = httpx.post(f"{server.url}/api/v1/tasks", json=order, timeout=60)
        assert done.status_code == 201, done.text
