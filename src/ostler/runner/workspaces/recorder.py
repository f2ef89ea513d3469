"""Turns the state of a file tree into a git tree.

Git never looks at a tree that an agent can write. The changed files are copied into a stage that only Ostler reaches,
without anything called `.git`, and git takes them from there into a repository of ours. So no configuration, hook,
filter, nested repository or link of the agent is ever seen by git, while attributes and ignore rules count as usual.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from threading import Lock

import msgspec

from ostler.base.beneath import folder, make_folders, open_beneath, opened
from ostler.base.ids import new_id
from ostler.runner.file_trees.trees import Found, copy_content, open_file, walk
from ostler.runner.workspaces.git import Git
from ostler.wire.workspaces import LargeFile

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_IGNORE_FILE = ".gitignore"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REMEMBERED = 8
_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What may differ from the parent tree: files that are there, and files or folders that are gone."""

    present: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    there: frozenset[str] | None = None
    """If known, all files that are there, changed or not; tracked ones that are missing here are gone too."""


class RecordLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was changed is recorded; git would read even a hole of a terabyte byte by byte."""

    file_bytes: int = 256 * 2**20
    total_bytes: int = 4 * 2**30


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A git tree, and the changed files that it lacks."""

    tree: str
    too_large: tuple[LargeFile, ...] = ()


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a git tree."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    submodules: frozenset[str] = frozenset()

    def worth_entering(self, found: Found) -> bool:
        """Not git's own folders, and not other repositories: git does not look into them either."""
        if is_git(found.name) or found.path in self.submodules:
            return False
        return found.path in self.folders or not _holds_git(found)


def is_git(name: str) -> bool:
    """Whether git takes this name for its own folder."""
    return name.lower() == ".git"


def in_git(path: str) -> bool:
    """Whether a path leads into a repository's own folder."""
    return any(is_git(name) for name in path.split("/"))


def _holds_git(found: Found) -> bool:
    try:
        at = os.open(found.name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found.folder)
    except OSError:
        return False
    try:
        os.stat(".git", dir_fd=at, follow_symlinks=False)
    except OSError:
        return False
    finally:
        os.close(at)
    return True


def is_recordable(found: Found) -> bool:
    """Whether git can keep it: an ordinary file or a link, and not part of a repository's own folder."""
    mode = found.stat.st_mode
    return (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not is_git(found.name)


def changed_since(root: int, contents: Contents, since: int) -> Changes:
    """What a tree has that was touched at the ctime `since` or later; changed ignore rules make everything count."""
    there: list[str] = []
    fresh: list[str] = []
    rules_changed = False
    for found in walk(root, enter=contents.worth_entering):
        if is_recordable(found):
            there.append(found.path)
            if found.stat.st_ctime_ns >= since:
                fresh.append(found.path)
                rules_changed |= found.name == _IGNORE_FILE
    return Changes(present=tuple(there if rules_changed else fresh), there=frozenset(there))


class Recorder:
    """Records trees into repositories of ours; `scratch` is a folder on the same file system as the trees."""

    def __init__(self, git: Git, scratch: Path, throw_away: Callable[[Path], None], limits: RecordLimits) -> None:
        self._git = git
        self._scratch = scratch
        self._limits = limits
        self._throw_away = throw_away
        self._lock = Lock()
        self._known: dict[str, Contents] = {}

    def make_repository(self, path: Path, borrowed: Sequence[Path]) -> None:
        """An empty repository that also sees the objects of others; written by hand, which is faster than git init."""
        if (path / "HEAD").exists():
            return
        for name in ("objects/info", "objects/pack", "refs"):
            (path / name).mkdir(parents=True, exist_ok=True)
        (path / "config").write_text(_CONFIG)
        (path / "objects/info/alternates").write_text("".join(f"{place}\n" for place in borrowed))
        (path / "HEAD").write_text("ref: refs/heads/none\n")

    def contents(self, repository: Path, tree: str) -> Contents:
        """What is in a tree; the last few are remembered."""
        with self._lock:
            known = self._known.get(tree)
        if known is None:
            known = _parsed(self._git.run("ls-tree", "-r", "-z", "--full-tree", tree, repository=repository))
            with self._lock:
                self._known[tree] = known
                while len(self._known) > _REMEMBERED:
                    del self._known[next(iter(self._known))]
        return known

    def record(
        self,
        repository: Path,
        parent: str,
        root: int,
        changes: Changes,
        *,
        frozen: bool = False,
        missing: Sequence[LargeFile] = (),
    ) -> Recorded:
        """The tree that `parent` becomes with these changes, read below `root`; a frozen tree need not be copied.

        Files that are `missing` below `root`, or too large, are in the tree as they were in the parent.
        """
        contents = self.contents(repository, parent)
        gone = [*changes.gone, *sorted(contents.files - changes.there if changes.there is not None else ())]
        if not changes.present and not gone and not missing:
            return Recorded(tree=parent)
        with self._staged() as (stage, index):
            orders = _Orders(self._git, repository, stage, index, 2 * self._limits.total_bytes)
            orders.run("read-tree", parent)
            stager = _Stager(root, stage, self._limits, missing, frozen=frozen)
            _place_rules(orders, stager, contents, changes, gone)
            wanted = _not_ignored(orders, contents, tuple(dict.fromkeys((*changes.present, *stager.too_large))))
            if gone:
                orders.run("rm", "--cached", "-r", "-f", "-q", "--ignore-unmatch", *_FROM_INPUT, given=_lines(gone))
            placed = stager.place(wanted)
            orders.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", given=_lines(placed))
            tree = orders.run("write-tree").decode().strip()
        left = tuple(LargeFile(path=path, size=stager.too_large[path]) for path in wanted if path in stager.too_large)
        return Recorded(tree=tree, too_large=left)

    def grafted(self, repository: Path, onto: str, old: str, new: str) -> str:
        """The tree `onto` with every file that differs between two others as the newer of them has it."""
        listed = self._git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new, repository=repository)
        fields = listed.split(b"\0")
        gone: list[bytes] = []
        there: list[bytes] = []
        for about, path in zip(fields[::2], fields[1::2], strict=False):
            _, mode, _, name, status = about.split(b" ")
            (gone if status == b"D" else there).append(b"%s %s\t%s\0" % (mode, name, path))
        with self._staged() as (stage, index):
            orders = _Orders(self._git, repository, stage, index, 2 * self._limits.total_bytes)
            orders.run("read-tree", onto)
            orders.run("update-index", "--replace", "-z", "--index-info", given=b"".join((*gone, *there)))
            return orders.run("write-tree").decode().strip()

    @contextmanager
    def _staged(self) -> Iterator[tuple[Path, Path]]:
        place = self._scratch / new_id("stg")
        (place / "files").mkdir(parents=True)
        try:
            yield place / "files", place / "index"
        finally:
            self._throw_away(place)


class _Orders:
    """Git with one repository, one stage and one index."""

    def __init__(self, git: Git, repository: Path, stage: Path, index: Path, file_bytes: int) -> None:
        self._git, self._repository, self._stage, self._index = git, repository, stage, index
        self._file_bytes = file_bytes

    def run(
        self, *arguments: str, given: bytes = b"", accept: Sequence[int] = (0,), env: Mapping[str, str] | None = None
    ) -> bytes:
        return self._git.run(
            *arguments,
            repository=self._repository,
            files=self._stage,
            index=self._index,
            given=given,
            accept=accept,
            env=env,
            file_bytes=self._file_bytes,
        )


def _place_rules(orders: _Orders, stager: "_Stager", contents: Contents, changes: Changes, gone: Sequence[str]) -> None:
    """Put the ignore rules that hold into the stage: unchanged ones from the parent, others from the tree."""
    changed = [path for path in changes.present if _is_rule(path)]
    missing = {*gone, *changed}
    unchanged = [path for path in contents.files if _is_rule(path) and not missing.intersection(_with_parents(path))]
    if unchanged:
        orders.run("checkout-index", "-f", "-q", "-z", "--stdin", given=_lines(unchanged))
    stager.place(changed)


def _is_rule(path: str) -> bool:
    return path.rpartition("/")[2] == _IGNORE_FILE


def _with_parents(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _not_ignored(orders: _Orders, contents: Contents, paths: Sequence[str]) -> list[str]:
    """The files that git would not ignore: those it tracks already, and those no rule speaks of."""
    untracked = [path for path in paths if path not in contents.files]
    if not untracked:
        return list(paths)
    # this command cannot be told to take names literally, but a name after a slash is one
    given = _lines(f"./{path}" for path in untracked)
    ask = ("check-ignore", "--no-index", "-z", "--stdin")
    answer = orders.run(*ask, given=given, accept=(0, 1), env={"GIT_LITERAL_PATHSPECS": "0"})
    ignored = frozenset(line.removeprefix("./") for line in os.fsdecode(answer).split("\0"))
    return [path for path in paths if path in contents.files or path not in ignored]


class _Stager:
    """Copies files of a tree, folder by folder, to where git may read them."""

    def __init__(
        self, root: int, stage: Path, limits: RecordLimits, missing: Sequence[LargeFile], *, frozen: bool
    ) -> None:
        self._root = root
        self._stage = stage
        self._largest = limits.file_bytes
        self._left = limits.total_bytes
        self._frozen = frozen
        self.too_large = {file.path: file.size for file in missing if not in_git(file.path)}

    def place(self, paths: Sequence[str]) -> list[str]:
        """Copy what can be read; gives the paths that git shall look at, among them those that have vanished."""
        looked_at: list[str] = []
        with folder(self._stage) as stage:
            for above, group in groupby(sorted(paths, key=_place), key=lambda path: path.rpartition("/")[0]):
                looked_at += self._place_folder(stage, above, list(group))
        return looked_at

    def _place_folder(self, stage: int, above: str, paths: list[str]) -> list[str]:
        try:
            source = open_beneath(self._root, above, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return paths
        try:
            make_folders(stage, above)
            with opened(stage, above, os.O_RDONLY | os.O_DIRECTORY) as target:
                return [path for path in paths if self._place_one(source, target, path)]
        finally:
            os.close(source)

    def _place_one(self, source: int, target: int, path: str) -> bool:
        name = path.rpartition("/")[2]
        if path in self.too_large:
            return False
        try:
            status = os.stat(name, dir_fd=source, follow_symlinks=False)
            self._copy(Found(path, name, source, status), target)
        except _TooLarge as error:
            self.too_large[path] = error.size
            return False  # what git has of it stays
        except FileExistsError:
            return True  # placed before
        except FileNotFoundError:
            return True  # gone, and git shall see that
        except OSError:
            return False  # unreadable: what git has of it stays
        return True

    def _copy(self, found: Found, target: int) -> None:
        if stat.S_ISLNK(found.stat.st_mode):
            os.symlink(os.readlink(found.name, dir_fd=found.folder), found.name, dir_fd=target)
            return
        with closing_file(found) as content:
            self._count(os.fstat(content).st_size)
            if self._frozen and _linked(found, target):
                return
            copy = os.open(found.name, _NEW, found.stat.st_mode & 0o777 | 0o600, dir_fd=target)
            try:
                copy_content(content, copy)
            finally:
                os.close(copy)

    def _count(self, size: int) -> None:
        if size > self._largest or size > self._left:
            raise _TooLarge(size)
        self._left -= size


class _TooLarge(Exception):
    """A file is over a limit."""

    def __init__(self, size: int) -> None:
        self.size = size


def _linked(found: Found, target: int) -> bool:
    try:
        os.link(found.name, found.name, src_dir_fd=found.folder, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # another file system, or not ours: it must be copied
        return False
    return True


@contextmanager
def closing_file(found: Found) -> Iterator[int]:
    """`open_file` for the length of a block."""
    content = open_file(found)
    try:
        yield content
    finally:
        os.close(content)


def _place(path: str) -> tuple[str, str]:
    above, _, name = path.rpartition("/")
    return above, name


def _lines(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _parsed(listing: bytes) -> Contents:
    files: set[str] = set()
    folders: set[str] = set()
    submodules: set[str] = set()
    for line in filter(None, listing.split(b"\0")):
        about, _, name = line.partition(b"\t")
        path = os.fsdecode(name)
        (submodules if about.startswith(b"160000") else files).add(path)
        above = path.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    return Contents(files=frozenset(files), folders=frozenset(folders), submodules=frozenset(submodules))
