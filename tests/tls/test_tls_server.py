"""A server speaks https itself, takes renewed certificates, and says what is wrong with its files."""

import asyncio
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from ostler.client import AsyncClient, Client
from tests.support.certificates import Authority
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


def serial_of(server: RunningServer, authority: Authority) -> str:
    """Which certificate a server shows."""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=stretched(30)) as plain,
        trusting(authority).wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        return str((secure.getpeercert() or {})["serialNumber"])


def test_a_browser_needs_no_certificate_where_runners_do(server: RunningServer, authority: Authority) -> None:
    assert server.url.startswith("https://")
    with httpx.Client(base_url=server.url, verify=trusting(authority), timeout=60) as client:
        assert client.get("/api/v1/sessions").status_code == 200
        assert client.get("/").headers["content-type"].startswith("text/html")


def test_a_client_trusts_an_authority_of_its_own(server: RunningServer, authority: Authority) -> None:
    with Client(server.url, ca_file=authority.file) as client:
        session = client.sessions.create(agent="mock")
        assert session.run("mock: say hello").text == "hello"


async def test_the_asynchronous_client_does_too(server: RunningServer, authority: Authority) -> None:
    async with asyncio.timeout(stretched(60)), AsyncClient(server.url, ca_file=authority.file) as client:
        assert (await client.system.health()).status == "ok"


@pytest.mark.parametrize(
    ("args", "env", "code", "line"),
    [
        (("--ca-file", "{ca}"), {}, 0, ""),
        ((), {"OSTLER_CA_FILE": "{ca}"}, 0, ""),
        (("--ca-file", "/nowhere.pem"), {}, 2, "Setting ca_file=/nowhere.pem: cannot be read (No such file"),
        ((), {}, 3, "The certificate of {url} is of an authority that is not known here. Name the file"),
        (("--endpoint", "https://localhost:{port}", "--ca-file", "{ca}"), {}, 3, "is for another name. Use a name"),
        (("--endpoint", "http://127.0.0.1:{port}"), {}, 3, "The connection to http://127.0.0.1:{port} broke"),
    ],
)
def test_a_command_trusts_it_or_says_why_not(
    server: RunningServer,
    authority: Authority,
    tmp_path: Path,
    args: tuple[str, ...],
    env: dict[str, str],
    code: int,
    line: str,
) -> None:
    known = {"ca": str(authority.file), "port": server.port, "url": server.url}
    given = {"OSTLER_ENDPOINT": server.url, **{name: value.format(**known) for name, value in env.items()}}
    command = [*OSTLER, "sessions", "list", *(each.format(**known) for each in args)]
    done = subprocess.run(command, env=clean_env(tmp_path, given), capture_output=True, text=True, check=False)
    assert (done.returncode, line.format(**known) in done.stderr) == (code, True), done.stderr
    assert len(done.stderr.splitlines()) == (1 if code else 0)


def test_an_editor_s_agent_speaks_through_it(server: RunningServer, authority: Authority, tmp_path: Path) -> None:
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
    command = [*OSTLER, "acp", "--endpoint", server.url, *authority.trusted]
    with subprocess.Popen(
        command, env=clean_env(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(hello)
        process.stdin.flush()
        assert b'"protocolVersion":1' in process.stdout.readline()
        process.stdin.close()


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("missing", "Setting tls_cert={folder}/nothing.pem: cannot be read (No such file or directory). Name a file"),
        ("mismatch", "Setting tls_key={folder}/other.key: does not fit the certificate in {folder}/fine.crt."),
        ("expired", "Setting tls_cert={folder}/old.crt: has expired. Renew the certificate"),
        ("early", "Setting tls_cert={folder}/early.crt: is not valid yet. Look at the clock"),
        ("no key", "Setting tls_key={folder}/fine.crt: has no private key in PEM form."),
        ("encrypted", "Setting tls_key={folder}/closed.key: is encrypted. Give a key without a password"),
        ("alone", "Setting tls_key={folder}/fine.key: means nothing without tls_cert. Give --tls-cert too."),
        ("authority", "Setting tls_client_ca={folder}/fine.key: has no certificate in PEM form."),
        ("trusted", "Setting ca_file={folder}/nothing.pem: cannot be read (No such file or directory)."),
    ],
)
def test_a_file_that_will_not_do_is_named_at_the_start(tmp_path: Path, wrong: str, line: str) -> None:
    authority = Authority(tmp_path)
    fine, other = authority.pair("fine"), authority.pair("other")
    closed = tmp_path / "closed.key"
    lock = ["openssl", "ec", "-in", str(fine.key), "-aes128", "-passout", "pass:secret", "-out", str(closed)]
    subprocess.run(lock, capture_output=True, check=True)
    args = {
        "missing": ("--tls-cert", str(tmp_path / "nothing.pem")),
        "mismatch": ("--tls-cert", str(fine.certificate), "--tls-key", str(other.key)),
        "expired": authority.pair("old", since=-10, days=-1).served,
        "early": authority.pair("early", since=1).served,
        "no key": ("--tls-cert", str(fine.certificate), "--tls-key", str(fine.certificate)),
        "encrypted": ("--tls-cert", str(fine.certificate), "--tls-key", str(closed)),
        "alone": ("--tls-key", str(fine.key)),
        "authority": (*fine.served, "--tls-client-ca", str(fine.key)),
        "trusted": ("--ca-file", str(tmp_path / "nothing.pem")),
    }[wrong]
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(tmp_path / "state"), *args]
    done = subprocess.run(command, env=clean_env(tmp_path / "home"), capture_output=True, text=True, check=False)
    assert done.returncode in {1, 2}
    assert line.format(folder=tmp_path) in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_renewed_certificate_is_taken_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    pair = authority.pair("server")
    with running_server(tmp_path / "state", "--port", "0", *pair.served) as server:
        first = serial_of(server, authority)
        good = pair.key.read_bytes()
        pair.key.write_bytes(authority.pair("other").key.read_bytes())
        wait_until(lambda: "does not fit the certificate" in server.stderr.read_text(), what="the log has no warning")
        assert serial_of(server, authority) == first
        pair.key.write_bytes(good)
        authority.pair("server")
        wait_until(lambda: serial_of(server, authority) != first, what="the old certificate is still shown")
        with httpx.Client(verify=trusting(authority), timeout=60) as client:
            assert client.get(f"{server.url}/api/v1/version").status_code == 200


def test_hangup_reloads_certificate_and_client_authority_and_streams_go_on(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "authority"), Authority(tmp_path / "other", "other")
    pair, clients = authority.pair("server"), tmp_path / "clients.pem"
    clients.write_bytes(authority.file.read_bytes())
    args = ("--port", "0", *pair.served, "--tls-client-ca", str(clients))
    with (
        running_server(tmp_path / "state", *args) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", verify=trusting(authority), timeout=stretched(60)) as api,
    ):
        first = serial_of(server, authority)
        session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        with api.stream("GET", f"/sessions/{session}/events", params={"stream": "true"}) as stream:
            lines = stream.iter_lines()
            assert next(lines)
            clients.write_text("no certificate")
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "tls.not_renewed" in server.stderr.read_text(), what="the log has no warning")
            assert serial_of(server, authority) == first
            authority.pair("server")
            clients.write_bytes(other.file.read_bytes())
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: serial_of(server, authority) != first, what="the old certificate is still shown")
            assert api.post(f"/sessions/{session}/messages", json={"message": "mock: say still here"}).is_success
            assert any("still here" in line for line in lines)
        for shown, is_known in ((other, True), (authority, False)):
            context = trusting(authority)
            mine = shown.pair("client")
            context.load_cert_chain(mine.certificate, mine.key)
            with httpx.Client(base_url=server.url, verify=context, timeout=stretched(60)) as client:
                if is_known:
                    assert client.get("/api/v1/version").status_code == 200
                else:
                    with pytest.raises(httpx.TransportError):
                        client.get("/api/v1/version")
