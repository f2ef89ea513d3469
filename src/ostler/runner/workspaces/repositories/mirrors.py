"""Bare copies of remote repositories: fetched again when something new is wanted, shared inside a scope only."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec

from ostler.base.errors import RepositoryFailed
from ostler.base.undo import undone_by
from ostler.runner.file_trees.stopping import Stop
from ostler.runner.workspaces.git import Git, GitFailed, Progress, Remote
from ostler.runner.workspaces.orders import FetchedSubmodule, GitSource
from ostler.runner.workspaces.repositories.policy import (
    Address,
    Policy,
    allowed,
    checked_commit,
    checked_ref,
    remote_of,
)
from ostler.wire.workspaces import GitRef, GitRefs

_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_REFS_SECONDS = 60.0
_REFS_BYTES = 16 * 2**20
_HEAD_TOO = "+HEAD:refs/ostler/head"
_LOCAL = Remote(protocols=("file",))
_MOST_FILES = 2_000_000
_CHUNK = 65536
_PARTS = ("HEAD", "config", "refs", "objects")
_LARGE_FILE = re.compile(r"died of signal 25|File too large|invalid index-pack output")
_COPY_SAFE = {"core.trustctime": "false", "core.checkStat": "minimal"}
"""A copied tree has new inodes and times; without this, git reads every file of it again."""
_HEAD = re.compile(rb"ref: refs/heads/(\S+)\tHEAD")


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that is in a mirror now."""

    mirror: Path
    url: str
    commit: str
    branch: str | None
    """The branch the workspace shall be on; None for a tag or a plain commit."""
    submodules: tuple[FetchedSubmodule, ...] = ()
    """Those that are in mirrors too, outer ones first."""


class Mirrors:
    """All mirrors below one folder."""

    def __init__(self, git: Git, root: Path, policy: Policy, *, most_bytes: int) -> None:
        """`most_bytes` is the largest file that a fetch may write."""
        self._git = git
        self._most_bytes = most_bytes
        self._root = root
        self._policy = policy
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._whole: dict[tuple[str, str | None, str], Fetched] = {}
        """What a whole commit id stands for, which never changes."""

    def refs(self, source: GitSource) -> GitRefs:
        """What a remote offers, without fetching it."""
        address = allowed(source.url, self._policy)
        remote = remote_of(address, source.credential, self._policy)
        try:
            listed = self._listed(address, remote)
        except GitFailed as error:
            raise RepositoryFailed(url=address.url, reason=str(error)) from error
        head = _HEAD.search(listed)
        refs = [ref for line in listed.decode(errors="replace").splitlines() if (ref := _ref(line))]
        default = head[1].decode(errors="replace") if head else None
        return GitRefs(url=address.url, default_branch=default, refs=tuple(refs))

    def _listed(self, address: Address, remote: Remote) -> bytes:
        words = ("ls-remote", "--symref", "--", address.url)
        with self._git.started(*words, remote=remote, seconds=_REFS_SECONDS) as output:
            listed = output.read(_REFS_BYTES)
            if output.read(1):
                raise GitFailed(f"it names more than {_REFS_BYTES} bytes of branches and tags")
        return listed

    def fetch(self, source: GitSource, scope: str, progress: Progress | None, stop: Stop) -> Fetched:
        """Make sure that the wanted commit is here, and say which it is."""
        address = allowed(source.url, self._policy)
        if source.branch is not None:
            checked_ref(source.branch)
        wanted = checked_commit(source.commit) if source.commit is not None else None
        key = hashlib.sha256(f"{scope}\0{address.url}".encode()).hexdigest()[:32]
        with self._locks[key]:
            if wanted and (known := self._whole.get((key, source.branch, wanted))):
                return known
            mirror = self._mirror(key)
            commit = self._commit(mirror, wanted) if wanted else None
            try:
                if commit is None:
                    self._update(mirror, address, source, progress, stop)
                    commit = self._first_commit(mirror, (wanted,) if wanted else _names(source.branch))
            except GitFailed as error:
                raise RepositoryFailed(url=address.url, reason=str(error)) from error
        if commit is None:
            raise RepositoryFailed(url=address.url, reason=_missing(source))
        fetched = Fetched(mirror=mirror, url=address.url, commit=commit, branch=self._branch(mirror, source))
        self._whole[key, source.branch, commit] = fetched
        return fetched

    def _mirror(self, key: str) -> Path:
        mirror = self._root / key
        if not all((mirror / name).exists() for name in _PARTS):  # one that was killed left a half, which git completes
            self._git.run("init", "--quiet", "--bare", "--template=", "--", str(mirror))
        return mirror

    def _update(self, mirror: Path, address: Address, source: GitSource, progress: Progress | None, stop: Stop) -> None:
        # a head that leads nowhere is no harm, unless it is what was asked for
        wanted = _EVERYTHING if source.branch or source.commit else (*_EVERYTHING, _HEAD_TOO)
        remote = remote_of(address, source.credential, self._policy)
        fetching = _Fetching(self._git, mirror, address, remote, progress, stop, self._most_bytes)
        fetching.run(wanted)
        if source.commit and len(source.commit) >= 40 and self._commit(mirror, source.commit) is None:
            fetching.run((source.commit,))  # it is on no branch; many servers hand it out by its id

    def _first_commit(self, mirror: Path, names: Sequence[str]) -> str | None:
        return next((commit for name in names if (commit := self._commit(mirror, name))), None)

    def _commit(self, mirror: Path, name: str) -> str | None:
        answer = self._git.run(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{name}^{{commit}}",
            repository=mirror,
            accept=(0, 1, 128),
        )
        return answer.decode().strip() or None

    def _branch(self, mirror: Path, source: GitSource) -> str | None:
        if source.branch is None:
            return None
        known = self._git.run(
            "rev-parse", "--verify", "--quiet", f"refs/heads/{source.branch}", repository=mirror, accept=(0, 1, 128)
        )
        return source.branch if known.strip() else None


class _Fetching:
    """One remote and its mirror."""

    def __init__(
        self,
        git: Git,
        mirror: Path,
        address: Address,
        remote: Remote,
        progress: Progress | None,
        stop: Stop,
        most_bytes: int,
    ) -> None:
        self._git, self._mirror, self._address, self._remote = git, mirror, address, remote
        self._most_bytes = most_bytes
        self._progress = progress or (lambda _: None)
        self._stop = stop

    def run(self, wanted: Sequence[str]) -> None:
        words = ("fetch", "--progress", "--prune", "--no-write-fetch-head", "--no-tags", "--force", "--")
        with undone_by(self._forget_half), self._explained():
            self._git.run(
                *words,
                self._address.url,
                *wanted,
                repository=self._mirror,
                remote=self._remote,
                progress=self._progress,
                stop=self._stop,
                file_bytes=self._most_bytes,
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except GitFailed as error:
            if _LARGE_FILE.search(str(error)):
                reason = f"it is larger than {self._most_bytes} bytes. Raise the setting `max_repository_bytes`."
                raise GitFailed(reason) from error
            raise

    def _forget_half(self) -> None:
        """What came of a fetch that was broken off is of no use, and may be large."""
        for file in (self._mirror / "objects" / "pack").glob("tmp_*"):
            file.unlink(missing_ok=True)


def _names(branch: str | None) -> tuple[str, ...]:
    """What a branch or tag is looked up by; branches go before tags of the same name."""
    return (f"refs/heads/{branch}", f"refs/tags/{branch}") if branch else ("refs/ostler/head",)


def _missing(source: GitSource) -> str:
    if source.commit:
        return f"it has no commit {source.commit}."
    return f"it has no branch or tag '{source.branch}'." if source.branch else "it has no commits yet."


def _ref(line: str) -> GitRef | None:
    commit, _, name = line.partition("\t")
    if name.endswith("^{}") or not name.startswith(("refs/heads/", "refs/tags/")):
        return None
    kind, _, short = name.removeprefix("refs/").partition("/")
    return GitRef(name=short, kind="branch" if kind == "heads" else "tag", commit=commit)


def check_size(git: Git, fetched: Fetched, most: int) -> None:
    """Raise RepositoryFailed if the files of a commit and its submodules are more than may be laid out."""
    left, files = most, _MOST_FILES
    inner = ((Path(each.mirror or ""), each.commit) for each in fetched.submodules)
    for mirror, commit in ((fetched.mirror, fetched.commit), *inner):
        with closing(_sizes(git, mirror, commit)) as sizes:
            for size in sizes:
                left, files = left - size, files - 1
                if left < 0:
                    reason = f"its files are more than {most} bytes. Raise the setting `max_unpacked_bytes`."
                    raise RepositoryFailed(url=fetched.url, reason=reason)
                if files < 0:
                    raise RepositoryFailed(url=fetched.url, reason=f"it has more than {_MOST_FILES} files.")


def _sizes(git: Git, mirror: Path, commit: str) -> Generator[int]:
    """The size of each file of a commit, as git tells them one by one: a small tree may have endless many."""
    with git.started("ls-tree", "-r", "-l", "-z", "--full-tree", commit, repository=mirror) as output:
        rest = b""
        while chunk := output.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\0")
            sizes = (line.partition(b"\t")[0].rpartition(b" ")[2] for line in lines)
            yield from (int(size) for size in sizes if size.isdigit())  # a submodule has none


Objects = Literal["linked", "copied", "borrowed"]
"""How a checkout has its objects; one that borrows them needs the mirror to stay."""


def check_out(git: Git, fetched: Fetched, target: Path, *, objects: Objects) -> None:
    """Make `target` a repository with the commit checked out, and each submodule's folder one too."""
    try:
        _check_out(git, fetched, target, objects)
        for each in fetched.submodules:
            inner = Fetched(mirror=Path(each.mirror or ""), url=each.url or "", commit=each.commit, branch=None)
            _check_out(git, inner, _own_folder(target, each.path), objects)
    except GitFailed as error:
        raise RepositoryFailed(url=fetched.url, reason=str(error)) from error


def _own_folder(target: Path, path: str) -> Path:
    """The folder of a submodule; a forged tree could have put a link in its way."""
    place = target / path
    if place.resolve() != target.resolve() / path:
        raise GitFailed(f"the submodule '{path}' lies behind a link")
    return place


def _check_out(git: Git, fetched: Fetched, target: Path, objects: Objects) -> None:
    how = {"linked": "--local", "copied": "--no-hardlinks", "borrowed": "--shared"}[objects]
    paths = ("--template=", "--", str(fetched.mirror), str(target))
    git.run("clone", "--quiet", "--no-checkout", how, *paths, remote=_LOCAL)
    repository = target / ".git"
    for name, value in {**_COPY_SAFE, "remote.origin.url": fetched.url}.items():
        git.run("config", name, value, repository=repository)
    branch = ("-B", fetched.branch) if fetched.branch else ("--detach",)
    git.run("checkout", "--quiet", "--force", *branch, fetched.commit, repository=repository, files=target)
