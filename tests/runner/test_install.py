"""Installing: from real registries, once however many ask, whole or not at all."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from ostler.agents.sources import Npm, Pypi
from ostler.base.errors import InstallFailed, Stopping
from ostler.runner.installs.installed import Record
from ostler.runner.installs.npm import machine_node
from ostler.runner.installs.toolbox import Toolbox
from tests.support.installing import SEARCH, begun, installer_in, npm_source, serving
from tests.support.patience import wait_until
from tests.support.serving import running_server

SEMVER = Npm(packages={"semver": "7.6.3"}, program="semver/bin/semver.js", needs_node="18")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_INSTALL = """
import sys
from pathlib import Path
from tests.support.installing import Vendor, installer_in
installer_in(Path(sys.argv[1])).install("tiny", (Vendor(sys.argv[2]).source(),))
"""


def litter(folder: Path) -> list[str]:
    """What lies on the agent's shelf beside finished things."""
    return [path.name for path in (folder / "agents" / "tiny").iterdir() if path.name.startswith(".")]


def test_a_package_of_the_npm_registry_runs(tmp_path: Path) -> None:
    made = installer_in(tmp_path).install("semver", (SEMVER,))
    done = subprocess.run([*made.command, "v1.2.3"], capture_output=True, text=True, check=True)
    assert (made.version, done.stdout) == ("7.6.3", "1.2.3\n")
    assert not list((tmp_path / "agents").rglob("package-lock.json"))


def test_a_package_of_the_python_index_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    source = Pypi(package="cowsay", version="6.1", python=HERE, program="cowsay")
    made = installer_in(tmp_path).install("cow", (source,))
    done = subprocess.run([*made.command, "-t", "moo"], capture_output=True, text=True, check=True)
    assert made.path == str(tmp_path / "agents" / "cow" / "6.1" / "bin" / "cowsay")
    assert "| moo |" in done.stdout


def test_what_is_installed_is_found_again_and_not_installed_again(tmp_path: Path) -> None:
    source, told = npm_source(tmp_path), list[str]()
    first = installer_in(tmp_path).install("tiny", (source,), progress=told.append)
    again = installer_in(tmp_path).install("tiny", (source,), progress=told.append)
    assert (first, installer_in(tmp_path).current("tiny")) == (again, again)
    assert len(told) == 1
    assert litter(tmp_path) == []


def test_two_who_install_at_once_install_once(tmp_path: Path) -> None:
    source, told = npm_source(tmp_path), list[str]()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(installer_in(tmp_path).install, "tiny", (source,), progress=told.append) for _ in range(4)]
        made = {job.result().path for job in jobs}
    assert len(made) == 1
    assert sum(line.startswith("npm installs") for line in told) == 1


def test_a_killed_installation_leaves_nothing_that_counts_and_the_next_one_works(tmp_path: Path) -> None:
    released = threading.Event()
    with serving() as vendor:
        vendor.files["/latest"] = b"2.0.0"
        vendor.files["/2.0.0/agent-x86"] = lambda handler: begun(handler, 99, b"half", until=released)
        child = subprocess.Popen([sys.executable, "-c", _INSTALL, str(tmp_path), vendor.url])
        wait_until(lambda: any((tmp_path / "agents").rglob("download")), what="the download never began", seconds=60)
        child.send_signal(signal.SIGKILL)
        child.wait()
        released.set()
        assert (installer_in(tmp_path).records("tiny"), len(litter(tmp_path))) == ([], 1)
        vendor.files["/2.0.0/agent-x86"] = b"#!/bin/sh\n"
        made = installer_in(tmp_path).install("tiny", (vendor.source(),))
    assert Path(made.path).read_bytes() == b"#!/bin/sh\n"
    assert litter(tmp_path) == []


def test_an_installation_that_is_called_off_ends_its_tool_and_leaves_nothing(tmp_path: Path) -> None:
    stop, released = threading.Event(), threading.Event()
    with serving() as vendor, ThreadPoolExecutor(1) as pool:
        vendor.files["/tiny-package"] = lambda _: released.wait(60)
        source = Npm(packages={"tiny-package": "1.0.0"}, program="x")
        installer = installer_in(tmp_path, environ={"NPM_CONFIG_REGISTRY": vendor.url})
        job = pool.submit(installer.install, "tiny", (source,), stop=stop)
        wait_until(lambda: "/tiny-package" in vendor.asked, what="npm never asked", seconds=60)
        stop.set()
        with pytest.raises(Stopping):
            job.result()
        released.set()
    assert (installer.records("tiny"), litter(tmp_path)) == ([], [])


def test_a_tool_that_fails_is_quoted_and_nothing_is_installed(tmp_path: Path) -> None:
    with serving() as vendor:
        source = Npm(packages={"tiny-package": "1.0.0"}, program="x")
        installer = installer_in(tmp_path, environ={"NPM_CONFIG_REGISTRY": vendor.url})
        with pytest.raises(
            InstallFailed, match=r"npm: npm ended with 1: .*404.* put its program on the PATH"
        ) as failed:
            installer.install("tiny", (source,))
    assert "_logs" not in str(failed.value)
    assert (installer.records("tiny"), litter(tmp_path)) == ([], [])


def test_a_folder_that_no_manifest_names_does_not_count(tmp_path: Path) -> None:
    half = tmp_path / "agents" / "tiny" / "1.2.3" / "node_modules" / "tiny-package" / "bin" / "tiny"
    half.parent.mkdir(parents=True)
    half.write_text("half")
    installer = installer_in(tmp_path)
    assert installer.current("tiny") is None
    installer.install("tiny", (npm_source(tmp_path),))
    assert half.read_text().startswith("#!/bin/sh")


def test_a_program_that_vanished_is_not_installed(tmp_path: Path) -> None:
    installer = installer_in(tmp_path)
    Path(installer.install("tiny", (npm_source(tmp_path),)).path).unlink()
    assert installer.records("tiny") == []


def test_the_manifest_tells_where_each_version_comes_from(tmp_path: Path) -> None:
    installer = installer_in(tmp_path)
    old, new = npm_source(tmp_path), npm_source(tmp_path, "2.0.0")
    installer.install("tiny", (old,))
    installer.install("tiny", (new,))
    wanted = old.packages["tiny-package"]
    path = "node_modules/tiny-package/bin/tiny"
    assert [record.version for record in installer.records("tiny")] == ["2.0.0", "1.2.3"]
    assert installer.records("tiny")[1] == Record(version="1.2.3", source="npm", wanted=wanted, path=path)


@pytest.mark.parametrize("version", ["../../etc", "", "a b", "-g"])
def test_what_cannot_be_a_version_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(InstallFailed, match="is not on offer; none is installed"):
        installer_in(tmp_path).install("tiny", (npm_source(tmp_path),), version=version)


def test_tools_see_how_to_reach_a_registry_and_no_secret(tmp_path: Path) -> None:
    fake = tmp_path / "bin"
    fake.mkdir()
    for name, text in {"node": "echo v20.1.0", "npm": f"env > {tmp_path}/seen; exit 1"}.items():
        (fake / name).write_text(f"#!/bin/sh\n{text}\n")
        (fake / name).chmod(0o755)
    given = {"ANTHROPIC_API_KEY": "sk-1", "HTTPS_PROXY": "http://proxy", "NPM_CONFIG_REGISTRY": "http://registry"}
    with pytest.raises(InstallFailed):
        installer_in(tmp_path, search=[str(fake), "/usr/bin", "/bin"], environ=given).install("semver", (SEMVER,))
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines())
    assert {name: seen.get(name) for name in given} == {**given, "ANTHROPIC_API_KEY": None}


@pytest.mark.parametrize(("needs", "found"), [(None, True), ("20", True), ("20.19", True), ("22.19", False)])
def test_the_machines_node_is_used_if_it_is_new_enough(tmp_path: Path, needs: str | None, found: bool) -> None:
    for name in ("node", "npm"):
        (tmp_path / name).write_text("#!/bin/sh\necho v20.20.2\n")
        (tmp_path / name).chmod(0o755)
    box = Toolbox({}, [str(tmp_path)], seconds=10, stop=threading.Event(), progress=lambda _: None)
    assert (machine_node(box, needs) is not None) is found


def test_the_tool_of_an_installation_ends_with_a_server_that_is_killed(state_dir: Path, tmp_path: Path) -> None:
    tools = {"node": "echo v99.0.0", "npm": f"echo $$ >{tmp_path}/pid\nexec sleep 600"}
    (tmp_path / "bin").mkdir()
    for name, script in tools.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environ = {"PATH": os.pathsep.join([str(tmp_path / "bin"), *SEARCH])}
    with running_server(state_dir, env=environ) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, f"{server.url}/api/v1/agents/pi/install", timeout=60)
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", what="npm never began")
        tool = Path("/proc", (tmp_path / "pid").read_text().strip())
        server.process.kill()
        wait_until(lambda: not tool.exists(), what="npm outlived the server")
        assert isinstance(asked.exception(), httpx.HTTPError)
