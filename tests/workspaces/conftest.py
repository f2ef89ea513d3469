"""Fixtures: one awkward repository, and the file systems that providers need."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from ostler.runner.workspaces.model import ProviderKind
from tests.workspaces.places import loop_disk, make_repository

_DISKS = {"btrfs": "btrfs", "reflink": "xfs"}


class Ground(NamedTuple):
    """Where a provider can be tried: a folder on a fitting file system, and what it needs to be told."""

    kind: ProviderKind
    root: Path
    zfs_command: tuple[str, ...] = ("zfs",)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that all workspaces come from; nobody may change it."""
    return make_repository(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Mounted file systems by provider, as far as this machine lets us."""
    folder = tmp_path_factory.mktemp("disks")
    with ExitStack() as stack:
        able = {kind: disk for kind, disk in _DISKS.items() if os.geteuid() == 0 and shutil.which(f"mkfs.{disk}")}
        yield {kind: stack.enter_context(loop_disk(folder, disk)) for kind, disk in able.items()}


@pytest.fixture(params=["overlay", "overlay-root", "btrfs", "zfs", "reflink", "git", "copy"])
def ground(request: pytest.FixtureRequest, tmp_path: Path, disks: dict[str, Path]) -> Ground:
    """A place for each provider in turn."""
    kind: ProviderKind = request.param
    if kind == "overlay-root" and os.geteuid() != 0:
        pytest.skip("an overlay as root needs root")
    if kind in _DISKS:
        if kind not in disks:
            pytest.skip(f"{kind} needs root and mkfs.{_DISKS[kind]}")
        return Ground(kind, disks[kind] / tmp_path.name / "state")
    fake = (
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).with_name("fake_zfs.py")),
        str(tmp_path / "zfs.json"),
        "tank",
    )
    return Ground(kind, tmp_path / "state", (*fake, str(tmp_path)))
