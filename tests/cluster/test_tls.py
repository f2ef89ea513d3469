"""Two servers over https, with an authority of their own, on a PostgreSQL that wants TLS too."""

import asyncio
import re
import shlex
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.certificates import Authority
from tests.support.databases import Cluster, running_cluster
from tests.support.hosts import started_runner
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env, running_server

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "run-a-cluster.md"


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    """Who signs; PostgreSQL runs as another user and must be able to go there."""
    with tempfile.TemporaryDirectory(prefix="ostler-ca-") as folder:
        Path(folder).chmod(0o755)
        made = Authority(Path(folder))
        made.file.chmod(0o644)
        yield made


@pytest.fixture(scope="module")
def cluster(authority: Authority) -> Iterator[Cluster]:
    """A PostgreSQL that takes nothing but TLS."""
    with tempfile.TemporaryDirectory(prefix="ostler-pg-") as folder, running_cluster(Path(folder)) as running:
        pair, data = authority.pair("database", ["127.0.0.1"]), Path(folder) / "data"
        for file, name in ((pair.certificate, "server.crt"), (pair.key, "server.key")):
            shutil.copy(file, data / name)
            shutil.chown(data / name, data.owner(), data.group())
            (data / name).chmod(0o600)
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write("ssl = on\n")
        (data / "pg_hba.conf").write_text("local all all trust\nhostssl all all 127.0.0.1/32 trust\n")
        running.stop("fast")
        running.start()
        yield running


@pytest.fixture(scope="module")
def servers(cluster: Cluster, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Two servers that trust the authority, and show certificates of it."""
    found = Servers(tmp_path_factory.mktemp("servers"), cluster)
    found.database += f"?sslmode=verify-full&sslrootcert={authority.file}"
    try:
        for name in ("a", "b"):
            found.start(name, *authority.pair(name, ["127.0.0.1"]).served, *authority.trusted)
        yield found
    finally:
        found.close()


@pytest.fixture
def clients(servers: Servers, authority: Authority) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A client of each."""
    context = ssl.create_default_context(cafile=str(authority.file))
    with (
        httpx.Client(base_url=f"{servers.url('a')}/api/v1", verify=context, timeout=120) as a,
        httpx.Client(base_url=f"{servers.url('b')}/api/v1", verify=context, timeout=120) as b,
    ):
        yield a, b


def test_a_prompt_goes_through_a_server_that_does_not_have_the_session(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    a, b = clients
    made = a.post("/sessions", json={"agent": "mock", "key": "secure"})
    assert made.status_code == 201, made.text
    assert b.post("/sessions/secure/messages", json={"message": "mock: say hello"}).status_code == 202
    wait_until(lambda: '"hello"' in b.get("/sessions/secure/messages").text, what="the agent has not answered")


def test_a_runner_goes_on_at_the_other_server(
    servers: Servers, authority: Authority, clients: tuple[httpx.Client, httpx.Client], tmp_path: Path
) -> None:
    token = clients[0].post("/runners/tokens", json={}).json()["token"]
    addresses = ("--server", servers.url("a"), "--server", servers.url("b"))
    with started_runner(tmp_path / "runner", *addresses, *authority.trusted, token=token) as runner:
        runner.wait_linked()
        servers.stop("a")
        runner.wait_linked(2)
        assert servers.url("b") in runner.stdout.read_text().splitlines()[-1]
    servers.start("a", *authority.pair("a", ["127.0.0.1"]).served, *authority.trusted)


@pytest.mark.parametrize(("trusted", "line"), [(True, "answers other servers in"), (False, "is of an authority that")])
def test_the_doctor_asks_servers_over_https(
    servers: Servers, authority: Authority, tmp_path: Path, trusted: bool, line: str
) -> None:
    env = {"OSTLER_DATABASE": servers.database, "OSTLER_ENDPOINT": servers.url("b")}
    env |= {"OSTLER_CA_FILE": str(authority.file)} if trusted else {}
    command = [*OSTLER, "doctor", "--cluster"]
    done = subprocess.run(command, env=clean_env(tmp_path, env), capture_output=True, text=True, check=False)
    assert line in done.stdout, done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("sslmode=disable", "no pg_hba.conf entry"),
        (
            "sslmode=verify-full&sslrootcert={stranger}",
            "Name the file with its authority's certificate with sslrootcert=",
        ),
    ],
)
def test_a_server_says_why_the_database_does_not_take_it(
    cluster: Cluster, tmp_path: Path, options: str, line: str
) -> None:
    stranger = Authority(tmp_path / "stranger").file
    database = f"{cluster.url('postgres')}?{options.format(stranger=stranger)}"
    command = [*OSTLER, "serve", "--port", "0", "--state-dir", str(tmp_path / "state"), "--database", database]
    done = subprocess.run(
        command, env=clean_env(tmp_path / "home"), capture_output=True, text=True, check=False, timeout=stretched(60)
    )
    assert done.returncode == 1
    assert line in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_the_guide_leads_to_a_server_over_tls(cluster: Cluster, authority: Authority, tmp_path: Path) -> None:
    _, secure, _, _ = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    pair = authority.pair("guide", ["127.0.0.1"])
    named = {
        "server.pem": str(pair.certificate),
        "server.key": str(pair.key),
        "authority.pem": str(authority.file),
        "postgresql://ostler:password@db.internal/ostler": cluster.new_database(),
        "sslmode=verify-full": f"sslmode=verify-full&sslrootcert={authority.file}",
        "10.0.0.1": "127.0.0.1",
        "$TOKEN": "a-token-of-the-guide",
        "/var/lib/ostler": str(tmp_path / "state"),
        "https://127.0.0.1:2468": "https://127.0.0.1:1",
        "\\\n": " ",
    }
    for name, value in named.items():
        assert name in secure
        secure = secure.replace(name, value)
    words = shlex.split(secure)
    assert words[:2] == ["ostler", "serve"]
    with running_server(tmp_path / "state", *words[2:], "--port", "0") as server:
        context = ssl.create_default_context(cafile=str(authority.file))
        headers = {"authorization": "Bearer a-token-of-the-guide"}
        answer = httpx.get(f"{server.url}/api/v1/sessions", headers=headers, verify=context, timeout=60)
    assert answer.status_code == 200


async def test_the_database_was_used_over_tls(servers: Servers) -> None:
    connection = await asyncpg.connect(servers.database)
    async with asyncio.timeout(stretched(30)):
        rows = await connection.fetch(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_port > 0"
        )
        await connection.close()
    assert [row["ssl"] for row in rows] == [True] * len(rows)
    assert len(rows) > 2
