"""A commit of the agent's files in a person's own checkout.

It is what `git commit --only` does for them, without hooks: no file is touched, and of the index only the entries of
the agent's files, in which nothing of the person's may be staged.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ostler.base.errors import DeliveryFailed, Unprocessable
from ostler.runner.delivery.branches import CommitText, committed, nothing_but
from ostler.runner.delivery.own_work import entries, tree_of_agent
from ostler.runner.workspaces.diffs import printable
from ostler.runner.workspaces.git import Git, GitFailed
from ostler.runner.workspaces.repositories.own_checkouts import Checkout, find_checkout
from ostler.runner.workspaces.repositories.policy import allowed_folder
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.versions import ABSENT, Version, differing
from ostler.wire.provisioning import DeliveryResult, OwnStep

_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")
_NOTHING = "0" * 40
_UNSTAGED = (ABSENT, "")
_MOST_NAMED = 20


def commit_here(
    states: States, workspace: str, snapshot: str, steps: Sequence[OwnStep], text: CommitText
) -> DeliveryResult:
    """Commit the agent's files in the checkout, on what is checked out there now. Blocks."""
    git = states.storage.git
    known = states.storage.bases.get(states.storage.record(workspace).base).checkout
    if known is None:
        raise Unprocessable(reason="Only a session in a git checkout of your own can be committed there.")
    found = find_checkout(git, Path(known.top))
    allowed_folder(found.top, states.storage.policy)
    _refuse_under_way(found)
    state = states.state(workspace, snapshot)
    tree = tree_of_agent(states, workspace, steps, found.tree, state.tree)
    if tree == found.tree:
        raise nothing_but(workspace, state.too_large)
    repository, when = states.repository(workspace), states.storage.clock.now()
    text = _in_name_of(git, found, text)
    commit = committed(git, repository, tree, found.commit, text, when)
    try:
        _bring(git, repository, found, commit)
        _move(git, repository, found, commit, tree, text)
    except GitFailed as error:
        raise DeliveryFailed(what="commit", reason=str(error)) from error
    return DeliveryResult(url=found.top, branch=found.branch, commit=commit)


def _refuse_under_way(found: Checkout) -> None:
    for name in _UNDER_WAY:
        if (Path(found.git_folder) / name).exists():
            raise Unprocessable(reason=f"A merge, rebase or bisect is under way in {found.top}. End it, then commit.")


def _in_name_of(git: Git, found: Checkout, text: CommitText) -> CommitText:
    """The name that the checkout's own configuration says, since the commit is its person's."""

    def configured(name: str, otherwise: str) -> str:
        asked = git.run("-C", found.top, "config", "--get", name, accept=(0, 1))
        return asked.decode(errors="replace").strip() or otherwise

    return CommitText(
        message=text.message,
        author_name=configured("user.name", text.author_name),
        author_email=configured("user.email", text.author_email),
    )


def _bring(git: Git, repository: Path, found: Checkout, commit: str) -> None:
    """Put the new objects beside those of the checkout."""
    wanted = f"{commit}\n" + (f"^{found.commit}\n" if found.commit is not None else "")
    pack = git.run("pack-objects", "--revs", "--stdout", "-q", repository=repository, given=wanted.encode())
    git.run("unpack-objects", "-q", repository=Path(found.git_folder), given=pack)


def _move(git: Git, repository: Path, found: Checkout, commit: str, tree: str, text: CommitText) -> None:
    """The index goes on to the commit, and the branch with it: who is ended in between has left files staged."""
    with _index_held(found) as index:
        changed = differing(git, repository, found.tree, tree)
        staged = _staged(git, found, index)
        _refuse_staged(
            [path for path, both in changed.items() if staged.get(path, _UNSTAGED) not in map(_as_staged, both)]
        )
        where, top, order = Path(found.git_folder), Path(found.top), ("update-index", "-z", "--index-info")
        follows = {path: new for path, (_, new) in changed.items()}
        git.run(*order, repository=where, files=top, index=index, given=entries(follows))
        reason = f"commit (ostler): {text.message.splitlines()[0]}"
        env = {"GIT_COMMITTER_NAME": text.author_name, "GIT_COMMITTER_EMAIL": text.author_email}
        with _in_place(index, where / "index"):
            git.run("update-ref", "-m", reason, "HEAD", commit, found.commit or _NOTHING, repository=where, env=env)


def _refuse_staged(paths: Sequence[str]) -> None:
    """What a person staged of a file would take the agent's part out again with their next commit."""
    if paths:
        names = [printable(path) for path in paths[:_MOST_NAMED]]
        reason = f"{', '.join(names)}: you have staged changes of your own there"
        hint = "Commit or unstage them first, or name the other files in `paths`."
        raise Unprocessable(reason=f"Nothing was handed over. {reason}. {hint}", errors={"paths": names})


def _as_staged(version: Version) -> tuple[str, str]:
    return _UNSTAGED if version.mode == ABSENT else (version.mode, version.blob)


def _staged(git: Git, found: Checkout, index: Path) -> dict[str, tuple[str, str]]:
    """What the index has; a file that is under a merge is none of ours."""
    listed = git.run("ls-files", "--stage", "-z", repository=Path(found.git_folder), files=Path(found.top), index=index)
    staged: dict[str, tuple[str, str]] = {}
    for line in os.fsdecode(listed).split("\0"):
        about, _, path = line.partition("\t")
        if path:
            mode, blob, stage = about.split(" ")
            staged[path] = (mode, blob if stage == "0" else "")
    return staged


@contextmanager
def _index_held(found: Checkout) -> Iterator[Path]:
    """A copy of the index; meanwhile no other git writes it."""
    index, lock = Path(found.git_folder) / "index", Path(found.git_folder) / "index.lock"
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except FileExistsError as error:
        reason = f"Git is at work in {found.top}: {lock} is there. Try again when it is gone."
        raise Unprocessable(reason=reason) from error
    try:
        with TemporaryDirectory(prefix="ostler-") as folder:
            copy = Path(folder) / "index"
            if index.exists():
                shutil.copy2(index, copy)
            yield copy
    finally:
        lock.unlink(missing_ok=True)


@contextmanager
def _in_place(copy: Path, index: Path) -> Iterator[None]:
    """The copy takes the place of the index, unless what follows fails."""
    before = copy.with_name("before")
    if index.exists():
        shutil.copy2(index, before)
        shutil.copymode(index, copy)
    _replace(index, copy)
    try:
        yield
    except GitFailed:
        if before.exists():
            _replace(index, before)
        else:
            index.unlink(missing_ok=True)
        raise


def _replace(index: Path, source: Path) -> None:
    new = index.with_name("index.ostler")
    shutil.copy2(source, new)
    new.replace(index)
