"""Makes a person's own folder a git repository, with a first commit of what is there."""

import os
from contextlib import suppress
from pathlib import Path

from ostler.base.errors import OstlerError, RepositoryFailed, Unprocessable
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.repositories.own_checkouts import Checkout, find_checkout
from ostler.wire.workspaces import MadeRepository

_MOST_FILES = 50_000
_MOST_BYTES = 2**30
_IDENTITY = ("-c", "user.name=Ostler", "-c", "user.email=ostler@localhost")
_MESSAGE = "As it was"


def make_repository(git: Git, folder: Path) -> MadeRepository:
    """A repository with a commit of all files that are not ignored; a half made one is completed. Blocks."""
    known = _checkout(git, folder)
    if known is not None and known.commit is not None:
        raise Unprocessable(reason=f"{folder} is in the git checkout {known.top} already. Begin a new session there.")
    _check_size(folder)
    try:
        if known is None:
            git.run("init", "-q", "--", str(folder))
        at = ("-C", str(folder if known is None else known.top))
        git.run(*at, "add", "--all")
        git.run(*at, *_IDENTITY, "commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", _MESSAGE)
        files = git.run(*at, "ls-files", "-z").count(b"\0")
    except GitFailed as error:
        raise RepositoryFailed(url=str(folder), reason=str(error)) from error
    made = find_checkout(git, folder)
    return MadeRepository(path=made.top, branch=made.branch, commit=made.commit or "", files=files)


def _checkout(git: Git, folder: Path) -> Checkout | None:
    try:
        return find_checkout(git, folder)
    except OstlerError:
        return None


def _check_size(folder: Path) -> None:
    """A home or a disk is not what was meant."""
    files = size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        files += len(names)
        for name in names:
            with suppress(OSError):  # gone meanwhile
                size += Path(place, name).lstat().st_size
        if files > _MOST_FILES or size > _MOST_BYTES:
            limit = f"more than {_MOST_FILES} files or {_MOST_BYTES // 2**20} MiB"
            hint = "Run `git init` there yourself, with a .gitignore, or work on a copy of a folder in it."
            raise Unprocessable(reason=f"{folder} has {limit}, too much to commit unasked. {hint}")
