"""The result in the checkout or folder that a workspace was made from.

Git reads and writes the files there, but by a repository of ours: nothing that is configured in theirs is heard, and
their index and branches stay as they are. What people have changed there meanwhile is never overwritten.
"""

import re
import tempfile
from pathlib import Path
from typing import BinaryIO

import msgspec

from ostler.base.errors import Unprocessable
from ostler.base.errors.delivery import DeliveryConflict
from ostler.runner.delivery.branches import nothing_but
from ostler.runner.delivery.own_work import tree_with
from ostler.runner.workspaces.diffs import printable, write_patch
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.repositories.policy import allowed_folder
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.versions import differing, with_lines

_NAMED = re.compile(r"error: (?:patch failed: )?(.+?)(?::\d+|: [^:]+)$", re.MULTILINE)
_MOST_NAMED = 20


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What was put where."""

    folder: str
    size: int
    """Of the patch that was applied, in bytes; 0 if everything was there."""


def apply_locally(states: States, workspace: str, snapshot: str, folder: str | None) -> Applied:
    """Bring the changes of a snapshot into a folder, all of them or none. Blocks."""
    place = _checked(states, folder)
    state = states.state(workspace, snapshot)
    before, done = states.delivered_trees(workspace, state.tree)
    if before == done:
        raise nothing_but(workspace, state.too_large)
    repository, git = states.repository(workspace), states.storage.git
    with _patch(git, repository, before, done) as whole:
        if _fits(git, repository, place, whole, "--reverse", "--check"):
            size = 0  # all of it is there
        else:
            size = _put(states, workspace, repository, place, whole, done)
    states.remember_applied(workspace, done)
    return Applied(folder=str(place), size=size)


def apply_part(
    states: States, workspace: str, folder: str | None, paths: tuple[str, ...], lines: tuple[int, ...] | None
) -> tuple[str, ...]:
    """Bring some files as they are now, or some lines of one, into a folder; the rest may follow later. Blocks."""
    place = _checked(states, folder)
    repository, git = states.repository(workspace), states.storage.git
    before, done = states.delivered_trees(workspace, states.state(workspace, "now").tree)
    there = states.storage.record(workspace).applied or before
    news = differing(git, repository, there, done).items()
    try:
        chosen = {
            path: became if lines is None else with_lines(git, repository, was, became, lines)
            for path, (was, became) in news
            if printable(path) in paths
        }
    except GitFailed as error:
        reason = f"lines: nothing was changed in lines {'-'.join(map(str, lines or ()))} that is not there already."
        raise Unprocessable(reason=reason) from error
    if not chosen:
        return ()
    part = tree_with(git, repository, there, chosen)
    with _patch(git, repository, there, part) as patch:
        if not _fits(git, repository, place, patch, "--reverse", "--check"):
            _apply_or_name(git, repository, place, patch)
    states.remember_applied(workspace, part)
    return tuple(map(printable, chosen))


def _checked(states: States, folder: str | None) -> Path:
    if folder is None:
        raise Unprocessable(
            reason="There is no local checkout: the workspace was not made from a folder of this machine. "
            "Deliver a branch, a pull request or a patch instead."
        )
    return allowed_folder(folder, states.storage.policy, field="folder")


def _put(states: States, workspace: str, repository: Path, place: Path, whole: BinaryIO, done: str) -> int:
    """Apply what is new since the last time; the whole, if that was taken back there since."""
    git, last = states.storage.git, states.storage.record(workspace).applied
    if last is not None and last != done:
        with _patch(git, repository, last, done) as news:
            if _fits(git, repository, place, news):
                return _size(news)
    _apply_or_name(git, repository, place, whole)
    return _size(whole)


def _apply_or_name(git: Git, repository: Path, place: Path, patch: BinaryIO) -> None:
    try:
        _apply(git, repository, place, patch)
    except GitFailed as error:
        names = dict.fromkeys(_NAMED.findall(str(error)))
        files = ", ".join(list(names)[:_MOST_NAMED]) or str(error)
        raise DeliveryConflict(folder=str(place), files=files) from error


def _patch(git: Git, repository: Path, old: str, new: str) -> BinaryIO:
    file = tempfile.NamedTemporaryFile(prefix="ostler-", suffix=".patch")  # noqa: SIM115  whoever gets it closes it
    write_patch(git, repository, old, new, file)
    file.flush()
    return file  # type: ignore[return-value]


def _size(patch: BinaryIO) -> int:
    return patch.seek(0, 2)


def _fits(git: Git, repository: Path, place: Path, patch: BinaryIO, *how: str) -> bool:
    try:
        _apply(git, repository, place, patch, *how)
    except GitFailed:
        return False
    return True


def _apply(git: Git, repository: Path, place: Path, patch: BinaryIO, *how: str) -> None:
    """Git looks whether all of it can be done before it writes anything."""
    git.run("apply", "--whitespace=nowarn", *how, "--", patch.name, repository=repository, files=place)
