"""Bounded searches in the files of a workspace: for a text, and for all their names."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase

import msgspec

from ostler.base.beneath import opened
from ostler.base.errors import InvalidRequest
from ostler.runner.file_trees.trees import Found, open_file, walk
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.recorder import is_git, is_recordable
from ostler.wire.provisioning import FileQuery
from ostler.wire.workspaces import FileMatch, FileMatches, FilePaths

_SAMPLE = 8192
_LISTING_SECONDS = 5.0
_RULES_BYTES = 2**18
_PLAIN_NAME = re.compile(r"/?([\w.+@-]+)/?")
_MADE_BY_TOOLS = frozenset(
    {"node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
"""Folders that nobody writes in by hand, also where no rule says so."""


class SearchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """When a search stops."""

    files: int = 50_000
    file_bytes: int = 4 * 2**20
    total_bytes: int = 256 * 2**20
    seconds: float = 5.0
    line_length: int = 400


def search(files: Files, query: FileQuery, limits: SearchLimits | None = None) -> FileMatches:
    """Look through the tree, not into git's own folders and binary files; the star of a name also crosses folders."""
    if "\0" in query.text or len(query.text) > 1000:
        raise InvalidRequest(reason="text: give at most 1000 characters without NUL.", errors={"text": ["bad text"]})
    return _Search(query, limits or SearchLimits()).run(files.root)


class _Search:
    def __init__(self, query: FileQuery, limits: SearchLimits) -> None:
        self._query = query
        self._limits = limits
        self._needle = _folded(os.fsencode(query.text), query.ignore_case)
        self._deadline = time.monotonic() + limits.seconds
        self._found: list[FileMatch] = []
        self._files = 0
        self._bytes = 0

    def run(self, root: int) -> FileMatches:
        truncated = False
        for found in walk(root, enter=lambda folder: not is_git(folder.name)):
            is_wanted = is_recordable(found) and fnmatchcase(found.path, self._query.name)
            if time.monotonic() >= self._deadline or (is_wanted and self._is_enough()):
                truncated = True
                break
            if is_wanted:
                self._look(found)
        matches = tuple(self._found[: self._query.matches])
        return FileMatches(
            matches=matches, files_searched=self._files, truncated=truncated or len(matches) < len(self._found)
        )

    def _is_enough(self) -> bool:
        limits = self._limits
        return (
            len(self._found) >= self._query.matches or self._files >= limits.files or self._bytes >= limits.total_bytes
        )

    def _look(self, found: Found) -> None:
        self._files += 1
        if not self._query.text:
            self._found.append(FileMatch(path=printable(found.path), line=0, text=""))
            return
        content = self._content(found)
        for line, text in _lines_with(content, self._needle, self._query.ignore_case):
            shown = text[: self._limits.line_length].decode(errors="replace")
            self._found.append(FileMatch(path=printable(found.path), line=line, text=shown))
            if len(self._found) > self._query.matches:
                return

    def _content(self, found: Found) -> bytes:
        if found.stat.st_size > self._limits.file_bytes:
            return b""
        try:
            descriptor = open_file(found)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(self._limits.file_bytes)
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


def list_paths(files: Files, limit: int) -> FilePaths:
    """In bounded time, without git's own folders and those that tools make or the ignore rules of the root name."""
    skipped = _MADE_BY_TOOLS | _ignored_names(files.root)
    deadline = time.monotonic() + _LISTING_SECONDS
    paths: list[str] = []
    for found in walk(files.root, enter=lambda folder: not is_git(folder.name) and folder.name not in skipped):
        if time.monotonic() >= deadline:
            return FilePaths(paths=tuple(paths), truncated=True)
        if not is_recordable(found):
            continue
        if len(paths) >= limit:
            return FilePaths(paths=tuple(paths), truncated=True)
        paths.append(printable(found.path))
    return FilePaths(paths=tuple(paths), truncated=False)


def _ignored_names(root: int) -> frozenset[str]:
    """The plain names in the root's .gitignore; patterns and deeper rules are left to git."""
    with suppress(OSError), opened(root, ".gitignore", os.O_RDONLY | os.O_NONBLOCK) as file:
        lines = os.pread(file, _RULES_BYTES, 0).decode(errors="replace").splitlines()
        return frozenset(name[1] for line in lines if (name := _PLAIN_NAME.fullmatch(line.strip())))
    return frozenset()
