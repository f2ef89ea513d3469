"""How two recorded trees differ: a summary of every file, bounded text for people, and a patch for git."""

import os
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

import msgspec

from ostler.runner.workspaces.git import Git
from ostler.runner.workspaces.orders import DiffLimits
from ostler.wire.workspaces import ChangeStatus, Difference, FileChange, LargeFile

_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_STATUS: dict[str, ChangeStatus] = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "type_changed"}
_NO_MODE = "000000"
_PATCH_START = b"diff --git "


class _Change(msgspec.Struct, kw_only=True):
    """One file of the summary, before its text is known."""

    path: str
    status: ChangeStatus
    old_path: str | None
    modes: tuple[str, str]
    added: int = 0
    removed: int = 0
    binary: bool = False


def difference(
    git: Git, repository: Path, old: str, new: str, *, limits: DiffLimits, names: tuple[str, str], text: bool
) -> Difference:
    """Compare two trees; `names` is what the caller calls them."""
    changes = _summary(git, repository, old, new)
    shown = changes[: limits.files]
    with closing(_texts(git, repository, old, new, limits if text and shown else None)) as texts:
        files = tuple(_file(change, next(texts, (b"", False))) for change in shown)
    return Difference(
        old=names[0],
        new=names[1],
        files=files,
        files_changed=len(changes),
        added=sum(change.added for change in changes),
        removed=sum(change.removed for change in changes),
        truncated=len(shown) < len(changes) or any(file.truncated for file in files),
    )


def write_patch(
    git: Git, repository: Path, old: str, new: str, target: IO[bytes], *, left_out: Sequence[LargeFile] = ()
) -> int:
    """Write the difference as a patch that `git apply` takes, binary files included; gives its size.

    What was left out is named before the first file, where `git apply` passes over it.
    """
    command = ("diff-tree", "-r", "-p", "-M", "--binary", "--full-index", *_PLAIN, old, new)
    size = sum(target.write(_left_out(file)) for file in left_out)
    with git.started(*command, repository=repository) as output:
        while chunk := output.read(2**20):
            target.write(chunk)
            size += len(chunk)
    return size


def _left_out(file: LargeFile) -> bytes:
    name = printable(file.path).replace("\n", "\\n")
    return f"Left out: {name} has {file.size} bytes, which is too large for a snapshot.\n".encode()


def _summary(git: Git, repository: Path, old: str, new: str) -> list[_Change]:
    command = ("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", *_PLAIN, old, new)
    fields = deque(git.run(*command, repository=repository).split(b"\0"))
    changes: list[_Change] = []
    while fields and fields[0].startswith(b":"):
        changes.append(_raw(fields))
    for change in changes:
        _count(change, fields)
    return changes


def _raw(fields: deque[bytes]) -> _Change:
    old_mode, new_mode, _, _, letter = fields.popleft().decode().removeprefix(":").split(" ")
    path = os.fsdecode(fields.popleft())
    old_path = None
    if letter[0] == "R":
        old_path, path = path, os.fsdecode(fields.popleft())
    return _Change(path=path, status=_STATUS[letter[0]], old_path=old_path, modes=(old_mode, new_mode))


def _count(change: _Change, fields: deque[bytes]) -> None:
    added, removed, path = fields.popleft().split(b"\t", 2)
    if not path:  # renamed: both names follow
        fields.popleft()
        fields.popleft()
    change.binary = added == b"-"
    if not change.binary:
        change.added, change.removed = int(added), int(removed)


def _file(change: _Change, text: tuple[bytes, bool]) -> FileChange:
    old_mode, new_mode = change.modes
    return FileChange(
        path=printable(change.path),
        status=change.status,
        old_path=None if change.old_path is None else printable(change.old_path),
        old_mode=None if old_mode == _NO_MODE else old_mode,
        new_mode=None if new_mode == _NO_MODE else new_mode,
        binary=change.binary,
        added=change.added,
        removed=change.removed,
        diff="" if change.binary else text[0].decode(errors="replace"),
        truncated=text[1],
    )


def printable(path: str) -> str:
    """A path for people and JSON: bytes that are no text are written out."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _texts(
    git: Git, repository: Path, old: str, new: str, limits: DiffLimits | None
) -> Generator[tuple[bytes, bool], None, None]:
    """The text of each file in the order of the summary, and whether it was cut; without limits there is none."""
    if limits is None:
        return
    command = ("diff-tree", "-r", "-p", "-M", "--full-index", f"-U{limits.context}", *_PLAIN, old, new)
    left = limits.total_bytes
    with git.started(*command, repository=repository) as output:
        for piece in _pieces(output, limits):
            text, cut = piece.result()
            if len(text) > left:
                text, cut = b"", True
            left -= len(text)
            yield text, cut


def _pieces(output: IO[bytes], limits: DiffLimits) -> Iterator["_Piece"]:
    piece: _Piece | None = None
    while line := output.readline(limits.file_bytes):
        if line.startswith(_PATCH_START) and (piece is None or piece.at_line_start):
            if piece is not None:
                yield piece
            piece = _Piece(limits)
        if piece is not None:
            piece.add(line)
    if piece is not None:
        yield piece


class _Piece:
    """The diff of one file as it comes in: whole if it is small, else its beginning and its end."""

    def __init__(self, limits: DiffLimits) -> None:
        self._limits = limits
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque(maxlen=limits.tail_lines)
        self._lines = 0
        self._bytes = 0
        self.at_line_start = True

    def add(self, line: bytes) -> None:
        self._lines += self.at_line_start
        self._bytes += len(line)
        self.at_line_start = line.endswith(b"\n")
        if self._bytes <= self._limits.file_bytes and self._lines <= self._limits.file_lines:
            self._head.append(line)
        else:
            self._tail.append(line)

    def result(self) -> tuple[bytes, bool]:
        if not self._tail:
            return b"".join(self._head), False
        return b"".join(self._head[: self._limits.head_lines]) + b"[...]\n" + self._end(), True

    def _end(self) -> bytes:
        """The last lines, as far as they fit: one line may be as long as a whole file."""
        end = b"".join(self._tail)
        return end if len(end) <= self._limits.file_bytes else b""
