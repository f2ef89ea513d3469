"""`ostler doctor --cluster` looks at all that servers share, at every server and at every runner."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.buckets import CREDENTIALS, new_bucket, settings_of
from tests.support.databases import running_pooler
from tests.support.hosts import started_runner, token_of
from tests.support.patience import stretched
from tests.support.serving import OSTLER, clean_env
from tests.support.temporal_server import shared_temporal

NOBODY = "postgresql://postgres@127.0.0.1:1/nothing"


def doctor(folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [*OSTLER, "doctor", "--cluster", "--state-dir", str(folder / "state")],
        env=clean_env(folder / "home", {f"OSTLER_{name.upper()}": value for name, value in env.items()} | CREDENTIALS),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=stretched(120),
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def about(done: "subprocess.CompletedProcess[str]", words: str) -> str:
    return next((line for line in done.stdout.splitlines() if words in line), done.stdout)


@pytest.fixture
def runner(servers: Servers, tmp_path: Path) -> Iterator[str]:
    """A runner that is linked to `a`."""
    args = ("--server", servers.url("a"), "--name", "far")
    with started_runner(tmp_path / "far", *args, token=token_of(servers.url("a"))) as host:
        yield host.wait_linked()


def test_everything_that_is_in_order_is_said_in_a_line(servers: Servers, runner: str, tmp_path: Path) -> None:
    bucket = new_bucket()
    done = doctor(tmp_path / "doctor", database=servers.database, endpoint=servers.url("a"), **settings_of(bucket))
    assert (done.returncode, "fail" in done.stdout) == (0, False), done.stdout
    assert about(done, "PostgreSQL").startswith("ok    PostgreSQL 1")
    assert about(done, "schema").startswith("ok    The database has schema")
    assert "connections are in use" in done.stdout
    assert "reaches the others, directly" in done.stdout
    assert about(done, "clock").startswith("ok    The database's clock is")
    for name in ("a", "b"):
        assert about(done, servers.url(name)).startswith("ok    Server ")
    assert about(done, bucket).startswith(f"ok    Object store {bucket} writes, reads and deletes")
    assert about(done, "Runner far").startswith("ok    Runner far is linked, heard at")


def test_what_is_missing_is_named_with_the_next_step(servers: Servers, tmp_path: Path) -> None:
    url = shared_temporal().url
    done = doctor(
        tmp_path / "doctor",
        database=servers.database + "?pgbouncer=true",
        engine=url,
        endpoint="http://127.0.0.1:1",
        object_store="s3://nowhere-to-be-found",
    )
    assert done.returncode == 1
    assert about(done, "pooler").startswith("warn  Notifications do not pass the pooler. Add &direct=HOST:PORT")
    assert about(done, url) == (
        f"warn  Engine {url}: no server looks for work. Start the servers with this --engine and --deployment; work "
        "waits meanwhile."
    )
    assert about(done, "nowhere-to-be-found").startswith("fail")
    assert about(done, "Runners cannot be asked for").startswith("warn")


def test_a_pooler_that_nobody_named_is_found(servers: Servers, tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="ostler-pool-") as folder,
        running_pooler(servers.cluster, Path(folder)) as port,
    ):
        pooled = servers.database.replace(f":{servers.cluster.port}/", f":{port}/")
        done = doctor(tmp_path / "doctor", database=pooled, endpoint=servers.url("a"))
        assert about(done, "pooler").startswith("fail  A pooler is between, and --database does not say so.")
        assert done.returncode == 1
        direct = f"{pooled}?pgbouncer=true&direct=127.0.0.1:{servers.cluster.port}"
        done = doctor(tmp_path / "doctor", database=direct, endpoint=servers.url("a"))
        assert about(done, "reaches the others").startswith("ok"), done.stdout


@pytest.mark.parametrize("database", [NOBODY, "postgresql://postgres@127.0.0.1:0/x", "postgresql://u:p@/q@h/x"])
def test_a_database_that_cannot_be_used_is_a_line(database: str, tmp_path: Path) -> None:
    done = doctor(tmp_path / "doctor", database=database, endpoint="http://127.0.0.1:1")
    assert done.returncode == 1
    assert any(line.startswith("fail") and "atabase" in line for line in done.stdout.splitlines()), done.stdout
    assert ":p@" not in done.stdout


def test_a_database_that_was_not_named_is_told_so_in_a_line(tmp_path: Path) -> None:
    done = doctor(tmp_path / "doctor", endpoint="http://127.0.0.1:1")
    assert done.returncode == 0
    assert about(done, "No database").startswith("ok    No database was named here, so none was looked at. Set OSTLER_")


def test_what_was_not_named_here_is_asked_of_the_servers(servers: Servers, tmp_path: Path) -> None:
    done = doctor(tmp_path / "doctor", database=servers.database, endpoint=servers.url("a"))
    assert about(done, "file://").startswith("ok    The servers keep files in file:///")
    assert "which was not tried. Set OSTLER_OBJECT_STORE" in about(done, "file://")
    shown = servers.cluster.output("psql", "-At", "-d", servers.database, "-c", "SHOW server_version").split()[0]
    assert about(done, "PostgreSQL").startswith(f"ok    PostgreSQL {shown} at")


def test_a_server_that_is_lost_is_told_from_one_that_is_there(servers: Servers, tmp_path: Path) -> None:
    b = servers.url("b")
    try:
        servers.kill("b")
        done = doctor(tmp_path / "doctor", database=servers.database, endpoint=servers.url("a"))
        assert done.returncode == 1
        assert "is lost" in about(done, b)
        assert "Start it again with its state folder" in about(done, b)
        assert about(done, servers.url("a")).startswith("ok")
    finally:
        servers.start_missing()
    assert httpx.get(f"{servers.url('b')}/healthz").status_code == 200
