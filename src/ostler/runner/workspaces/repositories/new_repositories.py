"""Makes a person's own folder a git repository, with a first commit of what is there.

An agent may be at work in the folder, and may configure git there at any moment. So files are added by a repository of
ours, which knows no filter and no hook, and only what came of it is brought into theirs: no file is looked at there.
"""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from ostler.base.errors import OstlerError, RepositoryFailed, Unprocessable
from ostler.base.ids import new_id
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.repositories.own_checkouts import Checkout, find_checkout
from ostler.wire.workspaces import MadeRepository

_MOST_FILES = 50_000
_MOST_BYTES = 2**30
_IDENTITY = ("-c", "user.name=Ostler", "-c", "user.email=ostler@localhost")
_MESSAGE = "As it was"
_NOTHING = "0" * 40
_PLAIN = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode)"
    r"|user\.(name|email)|init\.defaultbranch|remote\..*\.(url|fetch)|branch\..*\.(remote|merge)",
    re.DOTALL,
)
"""Settings of a repository that make git run nothing and look nowhere else."""


def make_repository(git: Git, scratch: Path, folder: Path) -> MadeRepository:
    """A repository with a commit of all files that are not ignored; a half made one is completed. Blocks."""
    known = _checkout(git, folder)
    if known is not None and known.commit is not None:
        raise Unprocessable(reason=f"{folder} is in the git checkout {known.top} already. Begin a new session there.")
    if known is not None or os.path.lexists(folder / ".git"):
        _refuse_odd(git, folder, known)
    _check_size(folder)
    try:
        with tempfile.TemporaryDirectory(dir=scratch) as ours:
            files = _committed(git, Path(ours), folder, known)
    except GitFailed as error:
        raise RepositoryFailed(url=str(folder), reason=str(error)) from error
    made = find_checkout(git, folder)
    return MadeRepository(path=made.top, branch=made.branch, commit=made.commit or "", files=files)


def _committed(git: Git, ours: Path, folder: Path, known: Checkout | None) -> int:
    """Commit what is there; how many files that is."""
    repository, index, theirs = ours / "git", ours / "index", folder / ".git"
    settings = known.settings if known is not None else ()
    git.run("init", "-q", "--bare", "--", str(repository))
    excluded = ("-c", f"core.excludesFile={theirs / 'info' / 'exclude'}")
    git.run(*settings, *excluded, "add", "--all", repository=repository, files=folder, index=index)
    tree = git.run("write-tree", repository=repository, index=index).decode().strip()
    given = f"{_MESSAGE}\n".encode()
    commit = git.run(*_IDENTITY, "commit-tree", tree, repository=repository, given=given).decode().strip()
    files = git.run("ls-files", "-z", repository=repository, index=index).count(b"\0")
    git.run("init", "-q", "--", str(folder))
    if theirs.is_symlink() or not theirs.is_dir():
        raise _refused(folder, f"{theirs} is no folder any more")
    pack = git.run("pack-objects", "--revs", "--stdout", "-q", repository=repository, given=commit.encode() + b"\n")
    git.run("unpack-objects", "-q", repository=theirs, given=pack)
    if index.exists():
        place = theirs / new_id("index")
        shutil.copy2(index, place)  # as old as it is: by its age git knows which files it must look at once more
        place.replace(theirs / "index")
    reason = f"commit (initial): {_MESSAGE}"
    git.run(*_IDENTITY, "update-ref", "-m", reason, "HEAD", commit, _NOTHING, repository=theirs)
    return files


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
