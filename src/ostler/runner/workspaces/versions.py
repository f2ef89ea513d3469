"""Files as git trees have them: what differs between two trees, and three versions of a file made one."""

import os
import re
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ostler.runner.workspaces.git import Git, GitFailed

ABSENT = "000000"
ORDINARY = frozenset({"100644", "100755"})
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class Version(NamedTuple):
    """A file as a tree has it."""

    mode: str
    blob: str


def differing(git: Git, repository: Path, one: str, other: str) -> dict[str, tuple[Version, Version]]:
    """The files that differ between two trees, with both versions."""
    listed = git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", one, other, repository=repository)
    fields = os.fsdecode(listed).split("\0")
    found: dict[str, tuple[Version, Version]] = {}
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_blob, new_blob, _ = about.removeprefix(":").split(" ")
        found[path] = Version(old_mode, old_blob), Version(new_mode, new_blob)
    return found


def content(git: Git, repository: Path, version: Version) -> bytes:
    """What is in a file."""
    return git.run("cat-file", "blob", version.blob, repository=repository)


def merged(git: Git, repository: Path, current: Version, old: Version, new: Version) -> bytes:
    """The current version with what differs between two others; raises GitFailed where both changed a line."""
    with TemporaryDirectory(prefix="ostler-") as folder:
        names = []
        for name, version in (("current", current), ("old", old), ("new", new)):
            (Path(folder) / name).write_bytes(content(git, repository, version))
            names.append(str(Path(folder) / name))
        return git.run("merge-file", "-p", "--quiet", "--", *names)


def without_lines(git: Git, repository: Path, old: Version, new: Version, lines: tuple[int, ...]) -> Version:
    """The newer version of a file without what was changed in some of its lines; raises GitFailed if nothing was."""
    return _parted(git, repository, old, new, lines, with_them=False) or old


def with_lines(git: Git, repository: Path, old: Version, new: Version, lines: tuple[int, ...]) -> Version:
    """The older version of a file with what was changed in some lines of the newer; GitFailed if nothing was."""
    return _parted(git, repository, old, new, lines, with_them=True) or new


def _parted(
    git: Git, repository: Path, old: Version, new: Version, lines: tuple[int, ...], *, with_them: bool
) -> Version | None:
    if not {old.mode, new.mode} <= ORDINARY:
        return None
    before, after = (
        BytesIO(content(git, repository, each)).readlines() for each in (old, new)
    )  # lines as git has them
    shown = git.run(
        "diff", "-U0", "--text", "--no-ext-diff", "--no-textconv", old.blob, new.blob, repository=repository
    )
    hunks = [_Hunk.read(found) for found in _HUNK.findall(shown)]
    chosen = [hunk for hunk in hunks if hunk.first <= lines[1] and hunk.last >= lines[0]]
    if not chosen:
        raise GitFailed("nothing was changed in these lines")
    undone = [hunk for hunk in hunks if hunk not in chosen] if with_them else chosen
    for hunk in reversed(undone):
        after[hunk.start : hunk.start + hunk.lines] = before[hunk.old_start : hunk.old_start + hunk.old_lines]
    blob = git.run("hash-object", "-w", "--stdin", repository=repository, given=b"".join(after)).decode().strip()
    return Version(new.mode, blob)


class _Hunk(NamedTuple):
    """Lines of two versions that differ, counted from 0."""

    old_start: int
    old_lines: int
    start: int
    lines: int

    @classmethod
    def read(cls, found: tuple[bytes, ...]) -> "_Hunk":
        """Of the numbers in its head, which name the line before where there are none."""
        old_start, old_lines, start, lines = (int(each or b"1") for each in found)
        return cls(old_start - bool(old_lines), old_lines, start - bool(lines), lines)

    @property
    def first(self) -> int:
        """The number of its first line in the newer version; that of the line before if it was only removed there."""
        return self.start + bool(self.lines)

    @property
    def last(self) -> int:
        """The number of its last line; of the line after if it was only removed there."""
        return self.start + (self.lines or 1)
