"""A runner checks its server, shows what it is asked for, and says in one line why it is not linked."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import httpx
import pytest

from tests.support.certificates import Authority, Pair
from tests.support.hosts import RunnerHost, started_runner
from tests.support.patience import wait_until
from tests.support.serving import RunningServer


def token_of(server: RunningServer, authority: Authority) -> str:
    context = ssl.create_default_context(cafile=str(authority.file))
    answer = httpx.post(f"{server.url}/api/v1/runners/tokens", json={}, verify=context, timeout=60)
    return str(answer.json()["token"])


def wait_said(runner: RunnerHost, line: str) -> None:
    """Wait until the runner has said something; it goes on."""
    wait_until(
        lambda: runner.process.poll() is not None or line in runner.stderr.read_text(),
        what=f"'{line}' is not in {runner.stderr}",
    )
    text = runner.stderr.read_text()
    assert line in text
    assert "Traceback" not in text
    assert runner.process.poll() is None


@contextmanager
def showing(pair: Pair) -> Iterator[str]:
    """Somebody who shows a certificate, and nothing else; gives the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except OSError:
                    plain.close()

        threading.Thread(target=greet, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(2)


def test_a_runner_with_a_certificate_for_its_name_is_linked_and_stays(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    shown = authority.pair("builder", []).shown
    args = ("--server", server.url, "--name", "builder", *authority.trusted, *shown)
    with started_runner(tmp_path / "runner", *args, token=token_of(server, authority)) as runner:
        runner.wait_linked()
    with started_runner(tmp_path / "runner", *args) as again:
        again.wait_linked(2)
    without = ("--server", server.url, "--name", "builder", *authority.trusted)
    with started_runner(tmp_path / "runner", *without) as bare:
        code, line = bare.wait_ended()
    assert (code, line.endswith("Give it one with --client-cert and --client-key.")) == (1, True), line


def test_a_runner_s_files_may_be_named_by_a_variable(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    args = ("--server", server.url, "--name", "agent-7", *authority.pair("agent-*", []).shown)
    env = {"OSTLER_CA_FILE": str(authority.file)}
    with started_runner(tmp_path / "runner", *args, token=token_of(server, authority), env=env) as runner:
        runner.wait_linked()


@pytest.mark.parametrize("is_registered", [False, True])
def test_a_runner_that_is_told_http_where_https_is_spoken_says_so(
    server: RunningServer, tmp_path: Path, is_registered: bool
) -> None:
    folder, plain = tmp_path / "runner", server.url.replace("https://", "http://")
    folder.mkdir()
    if is_registered:
        (folder / "runner.json").write_text('{"key": "rnk_1", "id": "run_1"}')
    with started_runner(folder, "--server", plain, token="rtk_1") as runner:
        wait_said(runner, f"{plain} ended the connection without an answer. If it speaks TLS, begin the address with")


def test_one_without_a_certificate_is_sent_away(server: RunningServer, authority: Authority, tmp_path: Path) -> None:
    args = ("--server", server.url, *authority.trusted)
    with started_runner(tmp_path / "runner", *args, token=token_of(server, authority)) as runner:
        code, line = runner.wait_ended()
    wanted = "This server takes a runner only with a certificate. Give it one with --client-cert and --client-key."
    assert (code, line) == (1, f"Error: {wanted}")


def test_one_with_the_certificate_of_another_is_sent_away(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    args = ("--server", server.url, "--name", "mallory", *authority.trusted, *authority.pair("alice", []).shown)
    with started_runner(tmp_path / "runner", *args, token=token_of(server, authority)) as runner:
        code, line = runner.wait_ended()
    assert code == 1
    assert "The runner is called 'mallory', and its certificate is for alice." in line


def test_a_certificate_of_a_stranger_is_reported_and_tried_again(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    shown = Authority(tmp_path / "stranger").pair("builder", []).shown
    args = ("--server", server.url, "--name", "builder", *authority.trusted, *shown)
    with started_runner(tmp_path / "runner", *args, token=token_of(server, authority)) as runner:
        wait_said(runner, f"{server.url} ended the connection without a word, as it does with a certificate that has")


def test_an_unknown_authority_is_reported_and_tried_again(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    with started_runner(tmp_path / "runner", "--server", server.url, *stranger.trusted, token="rtk_any") as runner:
        wait_said(runner, f"the certificate of {server.url} is not of an authority in {stranger.file}")


def test_a_wrong_name_is_reported_and_tried_again(server: RunningServer, authority: Authority, tmp_path: Path) -> None:
    address = server.url.replace("127.0.0.1", "localhost")
    with started_runner(tmp_path / "runner", "--server", address, *authority.trusted, token="rtk_any") as runner:
        wait_said(runner, f"the certificate of {address} is for another name. Use a name that it has")


def test_an_expired_certificate_is_reported_and_tried_again(authority: Authority, tmp_path: Path) -> None:
    with showing(authority.pair("past", since=-10, days=-1)) as address:
        given = ("--server", address, *authority.trusted)
        with started_runner(tmp_path / "runner", *given, token="rtk_any") as runner:
            wait_said(runner, f"the certificate of {address} has expired. Renew it there")


def test_a_server_without_tls_is_reported_and_tried_again(authority: Authority, tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as listener:
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def answer() -> None:
            plain, _ = listener.accept()
            plain.recv(4096)
            plain.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
            plain.close()

        threading.Thread(target=answer, daemon=True).start()
        with started_runner(tmp_path / "runner", "--server", address, *authority.trusted, token="rtk_any") as runner:
            wait_said(runner, f"{address} does not speak TLS. Begin the address with http://")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("--ca-file", "{folder}/nothing"), "Setting ca_file={folder}/nothing: cannot be read (No such file"),
        (("--client-cert", "{folder}/one.crt"), "Setting client_cert={folder}/one.crt: has no private key in PEM"),
        (
            ("--client-cert", "{folder}/one.crt", "--client-key", "{folder}/two.key"),
            "Setting client_key={folder}/two.key: does not fit the certificate in {folder}/one.crt.",
        ),
    ],
)
def test_a_file_that_will_not_do_is_named_at_the_start(tmp_path: Path, args: tuple[str, ...], line: str) -> None:
    authority = Authority(tmp_path)
    authority.pair("one")
    authority.pair("two")
    given = (each.format(folder=tmp_path) for each in args)
    with started_runner(tmp_path / "runner", "--server", "https://127.0.0.1:9", *given, token="rtk_any") as runner:
        code, last = runner.wait_ended()
    assert code == 1
    assert line.format(folder=tmp_path) in last
