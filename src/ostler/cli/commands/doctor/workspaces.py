"""What `ostler doctor` says about workspaces: how many there are, what they take, and what is kept."""

import os
from collections.abc import Iterator
from pathlib import Path

from ostler.base.settings import Settings
from ostler.cli.commands.doctor.finding import Check

_MOST_FILES = 200_000
_MEBIBYTE = 2**20


def workspace_checks(settings: Settings) -> Iterator[Check]:
    """One verdict for all workspaces together."""
    root = settings.state_dir / "workspaces"
    count = sum(1 for _ in (root / "workspaces").glob("wsp_*"))
    size, is_all = _size(root)
    found = f"{count} workspaces take {'' if is_all else 'more than '}{size / _MEBIBYTE:.0f} MiB with all they share"
    yield Check(level="ok", found=f"{found}. Of ended sessions are kept: {_limits(settings)}")


def _limits(settings: Settings) -> str:
    limits = [
        (settings.kept_workspaces, "the newest {:g}"),
        (settings.kept_workspaces_days, "those of {:g} days"),
        (settings.kept_workspaces_bytes / _MEBIBYTE, "{:.0f} MiB"),
    ]
    named = [text.format(limit) for limit, text in limits if limit]
    return ", ".join(named) or "all, until they are deleted"


def _size(root: Path) -> tuple[int, bool]:
    """The bytes on disk, and whether all files were looked at."""
    size = files = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                size += (Path(folder) / name).lstat().st_blocks * 512
            except OSError:
                continue
        files += len(names)
        if files > _MOST_FILES:
            return size, False
    return size, True
