"""The contract of provisioners, with podman: hosts are made, found by their marks, started again and removed."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import pytest

from ostler.link.provisioner import Host, NewHost, NotMade, Unreachable
from ostler.runner.provisioners.podman import Podman
from ostler.runner.runtimes.container_engines import Engines
from tests.support.patience import wait_until
from tests.support.real_engine import BARE, VOLUMES, import_bare_image, install_engine, podman

pytestmark = pytest.mark.root
_SECRET = b"hunter2"
_SLEEP = ("/bin/sh", "-c", "echo begun; exec sleep 1000")


class Tried(NamedTuple):
    """A provisioner, and the podman behind it."""

    provisioner: Podman
    engine: Path
    folder: Path


@pytest.fixture(scope="module")
def tried() -> Iterator[Tried]:
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:  # podman takes no long names for its folders
        engine = install_engine(Path(short) / "podman")
        import_bare_image(engine)
        environ = {"PATH": f"{engine}{os.pathsep}{os.environ['PATH']}"}
        try:
            yield Tried(Podman(Engines(Path(short) / "home", environ)), engine, Path(short))
        finally:
            podman(engine, "rm", "--force", "--all", "--time", "0")


def _new(name: str, *command: str, image: str = BARE) -> NewHost:
    return NewHost(
        id=name,
        server="run_1",
        pool="small",
        image=image,
        command=command or _SLEEP,
        files={"/etc/ostler/token": _SECRET},
        network="host",
        volumes=VOLUMES,
    )


async def test_a_host_is_made_stopped_started_and_removed(tried: Tried) -> None:
    made = _new("small-1")
    await tried.provisioner.make(made)
    assert await tried.provisioner.list() == {"small-1": Host("small-1", "run_1", "running")}
    podman(tried.engine, "kill", "ostler-small-1")
    wait_until(lambda: "Exited" in podman(tried.engine, "ps", "--all"), what="the host has stopped")
    assert (await tried.provisioner.list())["small-1"].state == "stopped"
    await tried.provisioner.start("small-1")
    assert (await tried.provisioner.list())["small-1"].state == "running"
    await tried.provisioner.remove("small-1")
    assert await tried.provisioner.list() == {}
    await tried.provisioner.remove("small-1")  # again


async def test_its_secret_is_read_by_its_command_and_shown_nowhere(tried: Tried) -> None:
    await tried.provisioner.make(
        _new("small-2", "/bin/sh", "-c", "cat /etc/ostler/token; echo; stat -c %a /etc/ostler/token")
    )
    wait_until(lambda: podman(tried.engine, "logs", "ostler-small-2") == "hunter2\n600", what="the command has ended")
    assert (await tried.provisioner.last_words("small-2")).endswith("600")
    assert "hunter2" not in podman(tried.engine, "inspect", "ostler-small-2")
    assert [file.name for file in (tried.folder / "home").rglob("*") if b"hunter2" in _content(file)] == []
    await tried.provisioner.remove("small-2")


def _content(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (_new("small-3", image="localhost/no-such:1"), "podman create: .*no-such"),
        (msgspec.structs.replace(_new("small-3"), network="no-such"), "podman create: .*no-such"),
    ],
    ids=["image", "network"],
)
async def test_a_host_that_cannot_be_made_says_why(tried: Tried, new: NewHost, reason: str) -> None:
    with pytest.raises(NotMade, match=f"(?s){reason}"):
        await tried.provisioner.make(new)
    await tried.provisioner.remove("small-3")
    assert await tried.provisioner.list() == {}


@pytest.mark.parametrize(
    ("program", "reason"),
    [("exit 125", "podman ps: code 125"), ("echo nonsense", "podman ps: .*malformed"), (None, "cannot be started")],
    ids=["fails", "talks nonsense", "is missing"],
)
async def test_nothing_is_known_while_podman_does_not_answer(tmp_path: Path, program: str | None, reason: str) -> None:
    if program is not None:
        (tmp_path / "podman").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "podman").chmod(0o755)
    broken = Podman(Engines(tmp_path / "home", {"PATH": str(tmp_path)}))
    with pytest.raises(Unreachable, match=reason):
        await broken.list()
    assert await broken.last_words("small-1") in {"", "nonsense"}
