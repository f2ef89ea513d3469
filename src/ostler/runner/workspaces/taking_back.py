"""Takes back what was changed between two states of a workspace, file by file; what was changed since stays.

What a file becomes is worked out of git trees before anything is written: git never looks at the files themselves.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ostler.base.errors import Unprocessable
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.states import States

_ABSENT = "000000"
_ORDINARY = frozenset({"100644", "100755"})
_MOST_NAMED = 20


class _Version(NamedTuple):
    """A file as a tree has it."""

    mode: str
    blob: str


class _Result(NamedTuple):
    """What a file becomes: its content, or None if it goes."""

    path: str
    content: bytes | None
    executable: bool


def take_back(states: States, workspace: str, old: str, new: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Make these files what they were in the older state, but for what was changed after the newer one. Blocks.

    Gives the files that were written or removed; raises Unprocessable, with nothing done, if one cannot be.
    """
    git, repository = states.storage.git, states.repository(workspace)
    before, after, now = (states.state(workspace, name).tree for name in (old, new, "now"))
    since = {path: there for path, (_, there) in _differing(git, repository, after, now).items()}
    results: list[_Result] = []
    odd: list[str] = []
    for path, (was, became) in _differing(git, repository, before, after).items():
        is_now = since.get(path, became)
        if path not in paths or is_now == was:
            continue
        try:
            results.append(_result_of(git, repository, path, was, became, is_now))
        except GitFailed:
            odd.append(printable(path))
    if odd:
        reason = f"{', '.join(odd[:_MOST_NAMED])}: changed since in the same lines, or no ordinary file"
        hint = "Take newer turns back first, or name the other files in `paths`."
        raise Unprocessable(reason=f"Nothing was taken back. {reason}. {hint}", errors={"paths": odd[:_MOST_NAMED]})
    with Files(states.storage.open_tree(workspace)) as files:
        for result in results:
            if result.content is None:
                files.remove(result.path)
            else:
                files.write(result.path, result.content, executable=result.executable)
    return tuple(printable(result.path) for result in results)


def _differing(git: Git, repository: Path, one: str, other: str) -> dict[str, tuple[_Version, _Version]]:
    listed = git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", one, other, repository=repository)
    fields = os.fsdecode(listed).split("\0")
    found: dict[str, tuple[_Version, _Version]] = {}
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_blob, new_blob, _ = about.removeprefix(":").split(" ")
        found[path] = _Version(old_mode, old_blob), _Version(new_mode, new_blob)
    return found


def _result_of(git: Git, repository: Path, path: str, was: _Version, became: _Version, is_now: _Version) -> _Result:
    if not {was.mode, is_now.mode} <= {*_ORDINARY, _ABSENT}:
        raise GitFailed("a link or a submodule")
    if is_now == became:
        content = None if was.mode == _ABSENT else _content(git, repository, was)
        return _Result(path, content, was.mode == "100755")
    if _ABSENT in {was.mode, became.mode, is_now.mode}:
        raise GitFailed("made or removed since")
    return _Result(path, _merged(git, repository, was, became, is_now), is_now.mode == "100755")


def _content(git: Git, repository: Path, version: _Version) -> bytes:
    return git.run("cat-file", "blob", version.blob, repository=repository)


def _merged(git: Git, repository: Path, was: _Version, became: _Version, is_now: _Version) -> bytes:
    """What is there now, with the way from one version to the next taken back."""
    with TemporaryDirectory(prefix="ostler-") as folder:
        names = []
        for name, version in (("now", is_now), ("became", became), ("was", was)):
            (Path(folder) / name).write_bytes(_content(git, repository, version))
            names.append(str(Path(folder) / name))
        return git.run("merge-file", "-p", "--quiet", "--", *names)
