"""Makes a person's own folder a git repository, with a first commit of what is there."""

import os
import re
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
_PLAIN = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode)"
    r"|user\.(name|email)|init\.defaultbranch|remote\..*\.(url|fetch)|branch\..*\.(remote|merge)",
    re.DOTALL,
)
"""Settings of a repository that make git run nothing and look nowhere else."""


def make_repository(git: Git, folder: Path) -> MadeRepository:
    """A repository with a commit of all files that are not ignored; a half made one is completed. Blocks."""
    known = _checkout(git, folder)
    if known is not None and known.commit is not None:
        raise Unprocessable(reason=f"{folder} is in the git checkout {known.top} already. Begin a new session there.")
    if known is not None or os.path.lexists(folder / ".git"):
        _refuse_odd(git, folder, known)
    _check_size(folder)
    at = ("-C", str(folder))
    try:
        git.run("init", "-q", "--", str(folder))
        git.run(*at, "read-tree", "--empty")  # what was staged in a half made one is looked at anew
        git.run(*at, "add", "--all")
        git.run(*at, *_IDENTITY, "commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", _MESSAGE)
        files = git.run(*at, "ls-files", "-z").count(b"\0")
    except GitFailed as error:
        raise RepositoryFailed(url=str(folder), reason=str(error)) from error
    made = find_checkout(git, folder)
    return MadeRepository(path=made.top, branch=made.branch, commit=made.commit or "", files=files)


def _refuse_odd(git: Git, folder: Path, known: Checkout | None) -> None:
    """Raise unless a half made repository is one as we would have begun it.

    Its settings can name programs that git runs on files that are added, and folders that it takes them from.
    """
    own = folder / ".git"
    if known is None or {known.git_folder, known.common} != {str(own)} or own.is_symlink() or not own.is_dir():
        where = known.top if known is not None else f"{own}, which cannot be used"
        raise _refused(folder, f"there is a git repository without a commit already, {where}")
    listed = git.run("-C", str(folder), "config", "--local", "--list", "--name-only", "-z")
    odd = [name for name in os.fsdecode(listed).split("\0") if name and not _PLAIN.fullmatch(name)]
    if (own / "info" / "attributes").exists():
        odd.append(".git/info/attributes")
    if odd:
        raise _refused(folder, f"the git repository that was begun there has settings of its own ({odd[0][:80]})")


def _refused(folder: Path, reason: str) -> Unprocessable:
    return Unprocessable(reason=f"{folder}: {reason}. Make its first commit yourself: `git add -A && git commit`.")


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
