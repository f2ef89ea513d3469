"""A bounded search for a text in the files of a workspace."""

import os
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase

import msgspec

from ostler.base.errors import InvalidRequest
from ostler.runner.file_trees.trees import Found, open_file, walk
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.recorder import is_git, is_recordable

_SAMPLE = 8192


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and when to stop."""

    text: str
    """Taken as it is, never as a pattern; empty to look for names only."""
    name: str = "*"
    """A pattern for the path, such as `src/*.py`; the star also crosses folders."""
    ignore_case: bool = False
    matches: int = 200
    files: int = 50_000
    file_bytes: int = 4 * 2**20
    total_bytes: int = 256 * 2**20
    seconds: float = 5.0
    line_length: int = 400


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One place where the text stands; line 0 is the name itself."""

    path: str
    line: int
    text: str


class Matches(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    matches: tuple[Match, ...]
    files_searched: int
    truncated: bool
    """Whether a limit ended the search."""


def search(files: Files, query: Query) -> Matches:
    """Look through the tree, not into git's own folders and binary files."""
    if "\0" in query.text or len(query.text) > 1000:
        raise InvalidRequest(reason="text: give at most 1000 characters without NUL.", errors={"text": ["bad text"]})
    return _Search(query).run(files.root)


class _Search:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._needle = _folded(os.fsencode(query.text), query.ignore_case)
        self._deadline = time.monotonic() + query.seconds
        self._found: list[Match] = []
        self._files = 0
        self._bytes = 0

    def run(self, root: int) -> Matches:
        truncated = False
        for found in walk(root, enter=lambda folder: not is_git(folder.name)):
            if not is_recordable(found) or not fnmatchcase(found.path, self._query.name):
                continue
            if self._is_enough():
                truncated = True
                break
            self._look(found)
        matches = tuple(self._found[: self._query.matches])
        return Matches(
            matches=matches, files_searched=self._files, truncated=truncated or len(matches) < len(self._found)
        )

    def _is_enough(self) -> bool:
        query = self._query
        return (
            len(self._found) >= query.matches
            or self._files >= query.files
            or self._bytes >= query.total_bytes
            or time.monotonic() >= self._deadline
        )

    def _look(self, found: Found) -> None:
        self._files += 1
        if not self._query.text:
            self._found.append(Match(path=printable(found.path), line=0, text=""))
            return
        content = self._content(found)
        for line, text in _lines_with(content, self._needle, self._query.ignore_case):
            shown = text[: self._query.line_length].decode(errors="replace")
            self._found.append(Match(path=printable(found.path), line=line, text=shown))
            if len(self._found) > self._query.matches:
                return

    def _content(self, found: Found) -> bytes:
        if found.stat.st_size > self._query.file_bytes:
            return b""
        try:
            descriptor = open_file(found)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(self._query.file_bytes)
        self._bytes += len(content)
        return b"" if b"\0" in content[:_SAMPLE] else content


def _folded(text: bytes, ignore_case: bool) -> bytes:
    return text.decode(errors="replace").lower().encode() if ignore_case else text


def _lines_with(content: bytes, needle: bytes, ignore_case: bool) -> Iterator[tuple[int, bytes]]:
    if needle not in _folded(content, ignore_case):
        return
    for number, line in enumerate(content.split(b"\n"), 1):
        if needle in _folded(line, ignore_case):
            yield number, line.removesuffix(b"\r")
