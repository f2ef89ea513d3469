"""The folders of this machine that sessions may use, for people who choose one."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ostler.base.errors import RepositoryRefused
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.repositories.policy import Policy, allowed_folder
from ostler.wire.workspaces import Folder, FolderListing

_MOST_LOOKED_AT = 5000


def list_folders(path: str, policy: Policy, limit: int) -> FolderListing:
    """What is below a folder, without hidden ones; without a path, where one may begin. Blocks."""
    roots = _roots(policy)
    home = policy.home
    if path == "~" or path.startswith("~/"):
        path = f"{home or '~'}{path[1:]}"
    if not path and len(roots) != 1:
        return FolderListing(path="", folders=tuple(map(_described, roots)), truncated=False, home=home)
    here = roots[0] if not path else _root(path, roots) or allowed_folder(path, policy, field="path")
    found = list(islice(_below(here, policy), limit + 1))
    return FolderListing(
        path=str(here),
        parent=None if here in roots else str(here.parent),
        folders=tuple(_described(one) for one in sorted(found[:limit])),
        truncated=len(found) > limit,
        home=home,
        repository=_is_repository(here),
    )


def _roots(policy: Policy) -> list[Path]:
    named = policy.folders or ((policy.home,) if policy.home else ())
    return [Path(root).resolve() for root in named if Path(root).is_dir()]


def _root(path: str, roots: list[Path]) -> Path | None:
    with suppress(OSError, ValueError, RuntimeError):
        return next((root for root in roots if root == Path(path).resolve()), None)
    return None


def _below(folder: Path, policy: Policy) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _MOST_LOOKED_AT):
            if not entry.name.startswith(".") and entry.is_dir() and _is_allowed(entry.path, policy):
                yield Path(entry.path)


def _is_allowed(path: str, policy: Policy) -> bool:
    try:
        allowed_folder(path, policy)
    except RepositoryRefused:
        return False
    return printable(path) == path


def _described(path: Path) -> Folder:
    return Folder(path=str(path), name=path.name or str(path), repository=_is_repository(path))


def _is_repository(path: Path) -> bool:
    with suppress(OSError):
        return (path / ".git").exists()
    return False
