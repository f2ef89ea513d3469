"""Pi as its releases are, one file with Bun inside, packed as its makers do: it is installed, and it behaves."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest

from ostler.agents import ADAPTERS
from ostler.agents.pi import VERSION
from ostler.agents.sources import Download, Npm
from ostler.conformance.behaviours import BY_ID
from ostler.conformance.suite import Suite, play
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.platforms import this_platform
from tests.support.installing import serving
from tools.agent_cache import Search

_BUN = Npm(
    packages={"@oven/bun-{platform}": "1.4.4"},
    program="@oven/bun-{platform}/bin/bun",
    platforms={"linux-arm64": "linux-aarch64"},
)
_BUILD = ("build", "--compile", "--no-compile-autoload-bunfig", "dist/bun/cli.js", "dist/utils/image-resize-worker.js")
_BESIDE = (
    "package.json",
    "dist/modes/interactive/theme",
    "dist/modes/interactive/assets",
    "dist/core/export-html",
    "node_modules/@silvia-odwyer/photon-node/photon_rs_bg.wasm",
)
"""What the release has beside the program."""


def packed(bun: str, package: Path, folder: Path) -> bytes:
    """The release file."""
    home = folder / "home"
    home.mkdir()
    build = [bun, *_BUILD, "--outfile", str(folder / "pi")]
    subprocess.run(build, cwd=package, env={"HOME": str(home), "PATH": os.defpath}, capture_output=True, check=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1) as tar:
        tar.add(folder / "pi", "pi/pi")
        for name in _BESIDE:
            tar.add(_found(package, name), f"pi/{Path(name).name}")
    return archive.getvalue()


def _found(package: Path, name: str) -> Path:
    """A file of the package, or of one that npm put beside it."""
    inside = package / name
    return inside if inside.exists() else package.parents[1] / name.removeprefix("node_modules/")


@pytest.mark.timeout(600)  # Pi and Bun may have to be installed first
@pytest.mark.parametrize("name", ["pi"])
async def test_a_release_of_pi_is_installed_and_behaves(name: str, tmp_path: Path, search: Search) -> None:
    (adapter,) = (each for each in ADAPTERS if each.info.id == name)
    (npm,) = (each for each in adapter.sources if isinstance(each, Npm))
    release = next(each for each in adapter.sources if isinstance(each, Download))
    bun = search.installer.install("bun", [_BUN])
    package = Path(search.installer.install(name, [npm], version=VERSION).path).parents[2]
    platform = this_platform()
    file = packed(bun.path, package, tmp_path)
    with serving() as vendor:
        vendor.files[f"/{release.url.partition('://')[2].format(version=VERSION, platform=platform)}"] = file
        programs = search.programs
        environ = {"HOME": str(tmp_path)}
        installer = Installer(
            tmp_path / "agents", environ=environ, search=programs.search, platform=platform, mirror=vendor.url
        )
        pinned = msgspec.structs.replace(release, checksums={platform: hashlib.sha256(file).hexdigest()})
        made = installer.install(name, [pinned])
    assert made.command == (str(tmp_path / "agents" / "pi" / VERSION / "pi" / "pi"),)
    suite = Suite.of(adapter, msgspec.structs.replace(programs, installer=installer))
    for behaviour in ("text", "permission.allow", "plan.approve", "image", "mcp", "resume"):
        stage = suite.stage(BY_ID[behaviour], tmp_path / behaviour)
        assert (await play(BY_ID[behaviour], stage), stage.unparsed) == (None, []), behaviour
    shutil.rmtree(tmp_path / "agents")  # 120 MB
