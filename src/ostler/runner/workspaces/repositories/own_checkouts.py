"""A person's own git checkout that an agent works in: what it is, and the tree of its files now.

Git is told to use a repository of ours, a copy of the checkout's index, and the checkout's files: so nothing that is
configured there is run, no hook and no filter, and its index, branches, stash and files stay as they are. The copy of
the index saves reading the files that did not change since git looked at them.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ostler.base.errors import RepositoryFailed, Unprocessable
from ostler.base.ids import new_id
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.recorder import EMPTY_TREE, Recorded, RecordLimits
from ostler.wire.workspaces import LargeFile

_PLAIN_SETTINGS = ("core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase")
"""What decides how the files of a checkout lie there; none of them makes git run anything."""
_FROM_INPUT = ("-z", "--stdin")


class Checkout(msgspec.Struct, frozen=True, kw_only=True):
    """Where a checkout is, and what it stood at when a session began in it."""

    top: str
    git_folder: str
    common: str
    """Where its objects are, which linked worktrees have in common."""
    tree: str
    """Of the commit, or the empty one."""
    commit: str | None = None
    """None if it has none yet."""
    branch: str | None = None
    """None if its head is detached."""
    url: str | None = None
    """Of the remote that it is pushed to, without a user or a password."""
    settings: tuple[str, ...] = ()
    """Words for git that say how its files lie there."""
    submodules: tuple[str, ...] = ()


def find_checkout(git: Git, folder: Path) -> Checkout:
    """The checkout that a folder is in; raises Unprocessable with the reason if there is none that can be used."""
    try:
        words = ("--is-inside-work-tree", "--show-object-format", "--path-format=absolute")
        paths = ("--show-toplevel", "--git-dir", "--git-common-dir")
        found = _asked(git, folder, "rev-parse", *words, *paths).split("\n")
    except GitFailed as error:
        raise not_a_checkout(folder, "it is not below a git checkout") from error
    if found[0] != "true" or len(found) != len(paths) + 2:
        raise not_a_checkout(folder, "it is inside a .git folder, or its path is odd")
    if found[1] != "sha1":
        raise not_a_checkout(folder, f"its repository names objects by {found[1]}, which is not supported yet")
    top, git_folder, common = found[2:]
    if not folder.is_relative_to(top):
        raise not_a_checkout(folder, f"its files are said to be in {top}")
    commit = _if_any(git, top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    tree = _asked(git, top, "rev-parse", "--verify", f"{commit}^{{tree}}") if commit else EMPTY_TREE
    branch = _if_any(git, top, "symbolic-ref", "--quiet", "--short", "HEAD")
    return Checkout(
        top=top,
        git_folder=git_folder,
        common=common,
        tree=tree,
        commit=commit,
        branch=branch,
        url=_remote(git, top, branch),
        settings=tuple(_settings(git, top)),
        submodules=_submodules(git, top) if commit else (),
    )


def not_a_checkout(folder: Path | str, why: str) -> Unprocessable:
    """Why a folder has no review, and what helps."""
    hint = "Run `git init` there and commit what is there, or work on a copy: `repo` with mode `folder`."
    return Unprocessable(reason=f"{folder} is no git checkout that can be reviewed: {why}. {hint}")


def _asked(git: Git, folder: str | Path, *words: str) -> str:
    return os.fsdecode(git.run("-C", str(folder), *words)).removesuffix("\n")


def _if_any(git: Git, folder: str | Path, *words: str) -> str | None:
    try:
        return _asked(git, folder, *words) or None
    except GitFailed:
        return None


def _remote(git: Git, top: str, branch: str | None) -> str | None:
    name = _if_any(git, top, "config", "--get", f"branch.{branch}.remote") if branch else None
    url = _if_any(git, top, "config", "--get", f"remote.{name or 'origin'}.url")
    if url is None:
        return None
    if "://" in url:
        parts = urlsplit(url)
        is_web = parts.scheme in {"http", "https"}
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if is_web else url
    here = Path(top) / url
    return str(here.resolve()) if url.startswith((".", "/")) or here.exists() else url


def _settings(git: Git, top: str) -> Iterator[str]:
    for name in _PLAIN_SETTINGS:
        if (value := _if_any(git, top, "config", "--get", name)) is not None:
            yield from ("-c", f"{name}={value}")


def _submodules(git: Git, top: str) -> tuple[str, ...]:
    listed = git.run("-C", top, "ls-tree", "-r", "-z", "--full-tree", "HEAD")
    lines = (line.partition(b"\t") for line in listed.split(b"\0"))
    return tuple(os.fsdecode(path) for about, _, path in lines if about.startswith(b"160000"))


class OwnCheckouts:
    """Takes the trees of checkouts. All methods block."""

    def __init__(self, git: Git, scratch: Path, limits: RecordLimits) -> None:
        self._git = git
        self._scratch = scratch
        self._limits = limits

    def recorded(self, repository: Path, checkout: Checkout) -> Recorded:
        """The files as they are now, staged or not, without ignored ones."""
        with self._index(checkout) as index:
            try:
                return self._taken(repository, checkout, index)
            except GitFailed:  # an index of a kind that stands in more than one file: every file is read instead
                index.unlink(missing_ok=True)
        with self._index(None) as index:
            run = _Orders(self._git, repository, checkout, index, 2 * self._limits.total_bytes)
            head = _if_any(self._git, checkout.top, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
            try:
                run("read-tree", head or EMPTY_TREE)
                return self._taken(repository, checkout, index)
            except GitFailed as error:
                raise RepositoryFailed(url=checkout.top, reason=str(error)) from error

    @contextmanager
    def _index(self, checkout: Checkout | None) -> Iterator[Path]:
        """A copy of the index, as old as it is: by its age git knows which files it must look at once more."""
        place = self._scratch / new_id("idx")
        place.mkdir(mode=0o700)
        try:
            if checkout is not None:
                with suppress(FileNotFoundError):
                    shutil.copy2(Path(checkout.git_folder) / "index", place / "index")
            yield place / "index"
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _taken(self, repository: Path, checkout: Checkout, index: Path) -> Recorded:
        run = _Orders(self._git, repository, checkout, index, 2 * self._limits.total_bytes)
        changed = run("diff-files", "-z", "--name-only", "--ignore-submodules=all")
        others = run("ls-files", "-z", "--others", "--exclude-standard", *_excludes(checkout))
        paths = dict.fromkeys(os.fsdecode(path) for path in (changed + others).split(b"\0") if path)
        wanted, too_large = self._readable(checkout, [path for path in paths if not path.endswith("/")])
        given = b"".join(os.fsencode(path) + b"\0" for path in wanted)
        run("update-index", "--add", "--remove", "--replace", *_FROM_INPUT, given=given)
        return Recorded(tree=run("write-tree", "--missing-ok").decode().strip(), too_large=too_large)

    def _readable(self, checkout: Checkout, paths: Sequence[str]) -> tuple[list[str], tuple[LargeFile, ...]]:
        """The paths that git is to look at; what is too large or cannot be read stays as git has it."""
        wanted: list[str] = []
        large: list[LargeFile] = []
        left = self._limits.total_bytes
        for path in paths:
            place = Path(checkout.top) / path
            try:
                status = place.lstat()
            except OSError:
                wanted.append(path)  # gone, and git shall see that
                continue
            if stat.S_ISREG(status.st_mode):
                if status.st_size > min(left, self._limits.file_bytes):
                    large.append(LargeFile(path=path, size=status.st_size))
                    continue
                if not os.access(place, os.R_OK):
                    continue
                left -= status.st_size
            elif not stat.S_ISLNK(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                continue
            wanted.append(path)
        return wanted, tuple(large)


def _excludes(checkout: Checkout) -> list[str]:
    """The rules that a person keeps beside the files."""
    own = Path(checkout.common) / "info" / "exclude"
    return [f"--exclude-from={own}"] if own.is_file() else []


class _Orders:
    """Git with a repository of ours, the files of a checkout, and a copy of its index."""

    def __init__(self, git: Git, repository: Path, checkout: Checkout, index: Path, file_bytes: int) -> None:
        self._git, self._repository, self._checkout, self._index = git, repository, checkout, index
        self._file_bytes = file_bytes

    def __call__(self, *words: str, given: bytes = b"") -> bytes:
        return self._git.run(
            *self._checkout.settings,
            "-c",
            "core.safecrlf=false",
            *words,
            repository=self._repository,
            files=Path(self._checkout.top),
            index=self._index,
            given=given,
            file_bytes=self._file_bytes,
        )
