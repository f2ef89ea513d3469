"""Takes back what was changed between two states of a workspace, file by file; what was changed since stays.

What a file becomes is worked out of git trees before anything is written: git never looks at the files themselves.
"""

from pathlib import Path
from typing import NamedTuple

from ostler.base.errors import Unprocessable
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.versions import ABSENT, ORDINARY, Version, content, differing, merged, without_lines

_MOST_NAMED = 20


class _Result(NamedTuple):
    """What a file becomes: its content, or None if it goes."""

    path: str
    content: bytes | None
    executable: bool


def take_back(
    states: States, workspace: str, old: str, new: str, paths: tuple[str, ...], lines: tuple[int, ...] | None = None
) -> tuple[str, ...]:
    """Make these files what they were in the older state, but for what was changed after the newer one. Blocks.

    Gives the files that were written or removed; raises Unprocessable, with nothing done, if one cannot be.
    """
    git, repository = states.storage.git, states.repository(workspace)
    before, after, now = (states.state(workspace, name).tree for name in (old, new, "now"))
    since = {path: there for path, (_, there) in differing(git, repository, after, now).items()}
    results: list[_Result] = []
    odd: list[str] = []
    for path, (was, became) in differing(git, repository, before, after).items():
        is_now = since.get(path, became)
        if path not in paths or is_now == was:
            continue
        try:
            remaining = was if lines is None else without_lines(git, repository, was, became, lines)
            results.append(_result_of(git, repository, path, remaining, became, is_now))
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


def _result_of(git: Git, repository: Path, path: str, was: Version, became: Version, is_now: Version) -> _Result:
    if not {was.mode, is_now.mode} <= {*ORDINARY, ABSENT}:
        raise GitFailed("a link or a submodule")
    if is_now == became:
        remaining = None if was.mode == ABSENT else content(git, repository, was)
        return _Result(path, remaining, was.mode == "100755")
    if ABSENT in {was.mode, became.mode, is_now.mode}:
        raise GitFailed("made or removed since")
    return _Result(path, merged(git, repository, is_now, became, was), is_now.mode == "100755")
