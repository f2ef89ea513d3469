"""Fixtures: one awkward repository, and the file systems that providers need."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from ostler.wire.workspaces import SnapshotProvider
from tests.support.places import loop_disk, make_repository

_DISKS = {"btrfs": "btrfs", "reflink": "xfs"}


class Ground(NamedTuple):
    """Where a provider can be tried: a folder on a fitting file system, and what it needs to be told."""

    kind: SnapshotProvider
    root: Path
    zfs_command: tuple[str, ...] = ("zfs",)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that all workspaces come from; nobody may change it."""
    return make_repository(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Mounted file systems by provider; only root can mount."""
    folder = tmp_path_factory.mktemp("disks")
    with ExitStack() as stack:
        able = _DISKS if os.geteuid() == 0 else {}
        yield {kind: stack.enter_context(loop_disk(folder, disk)) for kind, disk in able.items()}


_AS_ROOT = [pytest.param(kind, marks=pytest.mark.root) for kind in ("overlay-root", *_DISKS)]


@pytest.fixture(params=["overlay", "zfs", "git", "copy", *_AS_ROOT])
def ground(request: pytest.FixtureRequest, tmp_path: Path, disks: dict[str, Path]) -> Ground:
    """A place for each provider in turn."""
    kind: SnapshotProvider = request.param
    if kind in _DISKS:
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
