"""What the agent did in a person's own checkout, without what that person did beside it: a tree made of snapshots."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ostler.base.errors import Unprocessable
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.versions import ORDINARY, Version, differing, merged
from ostler.wire.provisioning import OwnStep

_MOST_NAMED = 20
_NO_FILTER = frozenset({"unspecified", "unset"})


def tree_of_agent(states: States, workspace: str, steps: Sequence[OwnStep], onto: str, now: str) -> str:
    """A tree with the agent's changes; raises Unprocessable where they hang on lines of the person. Blocks."""
    git, repository = states.storage.git, states.repository(workspace)
    base = states.state(workspace, "base").tree
    moved, current = (differing(git, repository, base, tree) for tree in (onto, now))
    changed: dict[str, Version] = {}
    odd: list[str] = []
    for path, course in _courses(states, workspace, steps, base).items():
        committed = course[0]
        there = moved[path][1] if path in moved else committed
        if there == (current[path][1] if path in current else committed):
            result = there  # the person has committed all that is there, or thrown away what the agent did
        elif there is None or there in course:
            result = course[-1]
        else:
            result = _with(git, repository, there, committed, course[-1])
        if result is None:
            odd.append(printable(path))
        elif result != there:
            changed[path] = result
    if odd:
        raise _entangled(odd)
    _refuse_filtered(states, workspace, list(changed))
    return tree_with(git, repository, onto, changed)


def _courses(states: States, workspace: str, steps: Sequence[OwnStep], base: str) -> dict[str, list[Version | None]]:
    """Each of the agent's files as it would be after every step without the person: first as it was committed."""
    git, repository = states.storage.git, states.repository(workspace)
    courses: dict[str, list[Version | None]] = {}
    for step in steps:
        old, new = states.state(workspace, step.old).tree, states.state(workspace, step.new).tree
        mine = differing(git, repository, base, old)
        for path, (was, became) in differing(git, repository, old, new).items():
            if step.paths is not None and printable(path) not in step.paths:
                continue
            course = courses.setdefault(path, [mine[path][0] if path in mine else was])
            course.append(_with(git, repository, course[-1], was, became))
    return courses


def _with(
    git: Git, repository: Path, there: Version | None, was: Version | None, became: Version | None
) -> Version | None:
    """What is there with one more change; None if that cannot be said."""
    if there is None or was is None or became is None:
        return None
    if there in {was, became}:
        return became
    if not {there.mode, was.mode, became.mode} <= ORDINARY:
        return None
    try:
        text = merged(git, repository, there, was, became)
    except GitFailed:
        return None
    blob = git.run("hash-object", "-w", "--stdin", repository=repository, given=text).decode().strip()
    return Version(there.mode if was.mode == became.mode else became.mode, blob)


def _refuse_filtered(states: States, workspace: str, paths: Sequence[str]) -> None:
    """What a filter makes of a file in commits, such as that of git LFS or git-crypt, only the person's git can do."""
    known = states.storage.bases.get(states.storage.record(workspace).base).checkout
    if known is None or not paths:
        return
    given = b"".join(os.fsencode(path) + b"\0" for path in paths)
    found = states.storage.git.run("-C", known.top, "check-attr", "-z", "--stdin", "filter", given=given)
    fields = os.fsdecode(found).split("\0")
    filtered = [path for path, value in zip(fields[::3], fields[2::3], strict=False) if value not in _NO_FILTER]
    if filtered:
        names = [printable(path) for path in filtered[:_MOST_NAMED]]
        reason = f"{', '.join(names)}: a filter of git rewrites it in commits, such as that of git LFS"
        hint = "Commit it yourself, or name the other files in `paths`."
        raise Unprocessable(reason=f"Nothing was handed over. {reason}. {hint}", errors={"paths": names})


def _entangled(odd: list[str]) -> Unprocessable:
    reason = f"{', '.join(odd[:_MOST_NAMED])}: the agent changed lines of yours that are not committed"
    hint = "Commit yours first, or name the other files in `paths`."
    return Unprocessable(reason=f"Nothing was handed over. {reason}. {hint}", errors={"paths": odd[:_MOST_NAMED]})


def tree_with(git: Git, repository: Path, onto: str, changed: dict[str, Version]) -> str:
    """A tree with these files instead of its own."""
    with TemporaryDirectory(prefix="ostler-") as folder:
        index = Path(folder) / "index"
        git.run("read-tree", onto, repository=repository, index=index)
        git.run("update-index", "-z", "--index-info", repository=repository, index=index, given=entries(changed))
        return git.run("write-tree", "--missing-ok", repository=repository, index=index).decode().strip()


def entries(changed: dict[str, Version]) -> bytes:
    """As `git update-index --index-info` reads them."""
    return b"".join(f"{each.mode} {each.blob}\t".encode() + os.fsencode(path) + b"\0" for path, each in changed.items())
