"""Submodules: found in a commit, fetched like any other repository, and laid into the recorded tree as plain files.

Of `.gitmodules` only paths and addresses are read. Names, update commands and all else that it says about how to fetch
mean nothing here, and git's own submodule commands are never run.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ostler.base.errors import OstlerError, RepositoryFailed
from ostler.runner.file_trees.stopping import Stop
from ostler.runner.workspaces.git import Git, GitFailed, Progress
from ostler.runner.workspaces.orders import Credential, FetchedSubmodule, GitSource
from ostler.runner.workspaces.recorder import is_git
from ostler.runner.workspaces.repositories.mirrors import Fetched, Mirrors

_FILE = ".gitmodules"
_BLOB_MODES = ("100644", "100755")
_LINK, _TREE = "160000", "040000"
_NOTHING = "0" * 40
_ABSENT = ("", "")
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
_MOST = 200
_DEEPEST = 8
_ODD_PATH = "its path is not one inside the repository"
_NO_ADDRESS = "the repository does not say where it is"
_NOT_WANTED = "the repository says that it is not fetched (update = none)"
_TOO_MANY = f"only {_MOST} submodules are fetched"
_TOO_DEEP = f"only {_DEEPEST} levels of submodules are fetched"
_NO_SUCH_PLACE = "its address leads above the host of the repository"


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """A submodule as a commit names it."""

    path: str
    url: str = ""
    commit: str = ""
    why_not: str | None = None


class _Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One walk through a repository and what is below it."""

    source: GitSource
    scope: str
    progress: Progress | None
    stop: Stop
    found: list[FetchedSubmodule] = msgspec.field(default_factory=list)


class Submodules:
    """Fetches them into mirrors. All methods block."""

    def __init__(self, git: Git, mirrors: Mirrors) -> None:
        self._git = git
        self._mirrors = mirrors
        self._known: dict[tuple[Path, str], tuple[_Named, ...]] = {}
        """What a commit names, which never changes."""

    def fetch(
        self, fetched: Fetched, source: GitSource, scope: str, progress: Progress | None, stop: Stop
    ) -> tuple[FetchedSubmodule, ...]:
        """All submodules of a commit, outer ones first; one that cannot be had says why and harms nothing else."""
        visit = _Visit(source=source, scope=scope, progress=progress, stop=stop)
        if source.submodules:
            self._look(fetched, "", 0, visit)
        return tuple(visit.found)

    def _look(self, parent: Fetched, above: str, depth: int, visit: _Visit) -> None:
        for named in self._named(parent):
            path = f"{above}{named.path}"
            why_not = named.why_not or _limit(len(visit.found), depth)
            got = self._fetched(named, path, parent, visit) if why_not is None else why_not
            if isinstance(got, str):
                visit.found.append(FetchedSubmodule(path=path, commit=named.commit, why_not=got))
            else:
                visit.found.append(
                    FetchedSubmodule(path=path, commit=named.commit, url=got.url, mirror=str(got.mirror))
                )
                self._look(got, f"{path}/", depth + 1, visit)

    def _fetched(self, named: _Named, path: str, parent: Fetched, visit: _Visit) -> Fetched | str:
        """One submodule, or why it could not be had."""
        try:
            url = absolute_url(named.url, parent.url)
            source = GitSource(url=url, commit=named.commit, credential=_credential(visit.source, url))
            return self._mirrors.fetch(source, visit.scope, _prefixed(visit.progress, path), visit.stop)
        except OstlerError as error:
            return str(error)

    def _named(self, fetched: Fetched) -> tuple[_Named, ...]:
        key = fetched.mirror, fetched.commit
        if key not in self._known:
            try:
                self._known[key] = self._read(*key)
            except GitFailed as error:
                self._known[key] = (_Named(path=_FILE, why_not=f"it cannot be read: {error}"),)
        return self._known[key]

    def _read(self, mirror: Path, commit: str) -> tuple[_Named, ...]:
        mode, blob = entries(self._git, mirror, commit, [_FILE]).get(_FILE, _ABSENT)
        if mode not in _BLOB_MODES:
            return ()
        listed = self._git.run("config", "--no-includes", f"--blob={blob}", "-z", "--list", repository=mirror)
        wanted = _sections(listed.decode(errors="replace"))
        plain = [path for path in wanted if _is_plain(path)]
        links = {
            path: name for path, (mode, name) in entries(self._git, mirror, commit, plain).items() if mode == _LINK
        }
        odd = (_Named(path=path, why_not=_ODD_PATH) for path in wanted if path not in plain)
        return (*odd, *(_about(path, wanted[path], links[path]) for path in plain if path in links))


def _sections(listed: str) -> dict[str, dict[str, str]]:
    """What the file says about each path; a path that is named twice counts once."""
    sections: dict[str, dict[str, str]] = {}
    for item in filter(None, listed.split("\0")):
        key, _, value = item.partition("\n")
        name, _, field = key.rpartition(".")
        if name.startswith("submodule."):
            sections.setdefault(name, {})[field] = value
    found: dict[str, dict[str, str]] = {}
    for values in sections.values():
        if path := values.get("path", "").rstrip("/"):
            found.setdefault(path, values)
    return found


def _about(path: str, values: dict[str, str], commit: str) -> _Named:
    url = values.get("url", "")
    why_not = _NOT_WANTED if values.get("update") == "none" else None if url else _NO_ADDRESS
    return _Named(path=path, url=url, commit=commit, why_not=why_not)


def _is_plain(path: str) -> bool:
    """Whether it names something inside a tree, and nothing of git's own."""
    if path.startswith("-") or not path.isprintable() or _NO_TEXT in path:
        return False
    return not any(name in {"", ".", ".."} or is_git(name) for name in path.split("/"))


def _limit(count: int, depth: int) -> str | None:
    if count >= _MOST:
        return _TOO_MANY
    return _TOO_DEEP if depth >= _DEEPEST else None


def absolute_url(url: str, parent: str) -> str:
    """An address that may be relative to its parent's, as git reads it: `../lib` is beside the parent."""
    if not url.startswith(("./", "../")):
        return url
    root, path = _split(parent)
    names = [name for name in path.split("/") if name]
    for name in url.split("/"):
        if name == "..":
            if not names:
                raise RepositoryFailed(url=url, reason=_NO_SUCH_PLACE)
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    return root + "/".join(names)


def _split(url: str) -> tuple[str, str]:
    """What stays of an address, and the path behind it."""
    scheme, mark, rest = url.partition("://")
    if mark:
        host, _, path = rest.partition("/")
        return f"{scheme}://{host}/", path
    host, _, path = url.partition(":")
    return f"{host}:", path


def _credential(source: GitSource, url: str) -> Credential | None:
    """The credential of the order, for the host it was given for only: others must not be told it."""
    return source.credential if _place(source.url) == _place(url) else None


def _place(url: str) -> str:
    root, _ = _split(url)
    return root.lower()


def _prefixed(progress: Progress | None, path: str) -> Progress | None:
    if progress is None:
        return None
    tell = progress
    return lambda line: tell(f"Submodule {path}: {line}")


# In recorded trees


def entries(git: Git, repository: Path, tree: str, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The mode and the object of each path that is in a tree."""
    if not paths:
        return {}
    listed = git.run("ls-tree", "-z", "--full-tree", tree, "--", *paths, repository=repository)
    found: dict[str, tuple[str, str]] = {}
    for line in filter(None, os.fsdecode(listed).split("\0")):
        about, _, path = line.partition("\t")
        mode, _, name = about.split(" ")
        found[path] = mode, name
    return found


def grafted(git: Git, repository: Path, commit: str, submodules: Sequence[FetchedSubmodule]) -> str:
    """The tree of a commit with the files of its submodules in their places."""
    with _staged(git, repository) as stage:
        stage.run("read-tree", commit)
        for each in submodules:
            stage.set("0", _NOTHING, each.path)
            stage.run("read-tree", f"--prefix={each.path}/", each.commit)
        return stage.run("write-tree")


def ungrafted(
    git: Git, repository: Path, tree: str, base: str, submodules: Sequence[FetchedSubmodule]
) -> tuple[str, tuple[str, ...]]:
    """A tree with links in the places of submodules, as a commit has them; and which of them had changed.

    One that is gone, or that something else has taken the place of, stays gone.
    """
    outer = [each for each in submodules if not any(each.path.startswith(f"{other.path}/") for other in submodules)]
    paths = [each.path for each in outer]
    now, before = (entries(git, repository, state, paths) for state in (tree, base))
    same = [each for each in outer if now.get(each.path) == before.get(each.path)]
    changed = [each for each in outer if each not in same and now.get(each.path, _ABSENT)[0] == _TREE]
    with _staged(git, repository) as stage:
        stage.run("read-tree", tree)
        for each in (*same, *changed):
            stage.set(_LINK, each.commit, each.path)
        return stage.run("write-tree"), tuple(each.path for each in changed)


class _Stage:
    """Git with an index of its own, in which a tree is put together."""

    def __init__(self, git: Git, repository: Path, folder: Path) -> None:
        self._git, self._repository, self._folder = git, repository, folder

    def run(self, *words: str, given: bytes = b"") -> str:
        index = self._folder / "index"
        output = self._git.run(*words, repository=self._repository, files=self._folder, index=index, given=given)
        return output.decode().strip()

    def set(self, mode: str, name: str, path: str) -> None:
        """Make a path this object, instead of whatever it was or had below it; the mode 0 removes it."""
        self.run("update-index", "-z", "--index-info", given=os.fsencode(f"{mode} {name}\t{path}\0"))


@contextmanager
def _staged(git: Git, repository: Path) -> Iterator[_Stage]:
    with TemporaryDirectory(prefix="ostler-index-") as folder:
        yield _Stage(git, repository, Path(folder))
