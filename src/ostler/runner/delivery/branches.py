"""A commit of what an agent did, and its way to a branch of the remote.

The commit is made from the recorded files, never from the agent's own repository: its commits become one, and nothing
it wrote into its `.git` goes along.
"""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ostler.base.errors import DeliveryFailed, InvalidRequest, NothingToDeliver, Unprocessable
from ostler.base.retry import delays
from ostler.runner.delivery.own_work import tree_of_agent
from ostler.runner.workspaces.git import Git, GitFailed, Remote
from ostler.runner.workspaces.orders import Credential
from ostler.runner.workspaces.repositories.policy import Address, allowed, checked_ref, remote_of
from ostler.runner.workspaces.states import States
from ostler.wire.provisioning import OwnStep
from ostler.wire.workspaces import LargeFile, Workspace

_PASSING = re.compile(
    r"(?i)timed? ?out|connection|could not resolve|early eof|empty reply|hung up|HTTP 5\d\d|error: 5\d\d|RPC failed"
)
_TRIES = 3
_NAMED = 20
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 10.0
_ONLY_INNER = "only files of submodules were changed ({paths}), which no branch can hold. Ask for a patch instead."
_IDENTITY = re.compile(r"[<>\n\0]")


class CommitText(msgspec.Struct, frozen=True, kw_only=True):
    """Who made the commit, and what it says."""

    message: str
    author_name: str = "Ostler"
    author_email: str = "ostler@localhost"


class PushedBranch(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that is on the remote."""

    branch: str
    commit: str
    url: str
    left_out: tuple[str, ...] = ()
    """Submodules that were changed; a commit of the repository around them cannot hold that."""


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """What to push where."""

    workspace: str
    snapshot: str
    branch: str
    text: CommitText
    credential: Credential | None = None
    steps: tuple[OwnStep, ...] | None = None
    """In a person's own checkout: what is the agent's."""


def push(states: States, order: Push, *, sleep: Callable[[float], None] = time.sleep) -> PushedBranch:
    """Commit a snapshot and push it; pushing the same again changes nothing. Blocks."""
    workspace = states.storage.record(order.workspace).workspace
    if order.steps is not None and workspace.url is None:
        raise Unprocessable(reason="The checkout has no remote to push to. Add one with `git remote add`, or commit.")
    if workspace.url is None or workspace.commit is None:
        raise Unprocessable(reason="A branch needs a workspace of a git repository. Ask for a patch instead.")
    checked_ref(order.branch)
    address = allowed(workspace.url, states.storage.policy)
    commit, left_out = _commit(states, workspace, order)
    states.remember_push(order.workspace, order.branch, commit)
    pushing = _Pushing(states, address, remote_of(address, order.credential, states.storage.policy), order, commit)
    _patiently(pushing.run, sleep)
    return PushedBranch(branch=order.branch, commit=commit, url=workspace.url, left_out=left_out)


def _commit(states: States, workspace: Workspace, order: Push) -> tuple[str, tuple[str, ...]]:
    """A commit of the snapshot, the last one again if it would be the same; and the submodules that it leaves out."""
    state = states.state(workspace.id, order.snapshot)
    original, done = states.delivered_trees(workspace.id, state.tree)
    if order.steps is not None:
        done = tree_of_agent(states, workspace.id, order.steps, original, done)
    tree, left_out = states.as_commit(workspace.id, done)
    if tree == states.as_commit(workspace.id, original)[0]:
        if left_out:
            raise DeliveryFailed(what="branch", reason=_ONLY_INNER.format(paths=", ".join(left_out)))
        raise nothing_but(workspace.id, state.too_large)
    return _commit_of(states, workspace, order, tree), left_out


def nothing_but(workspace: str, left_out: Sequence[LargeFile]) -> NothingToDeliver:
    """Why nothing is delivered."""
    names = ", ".join(f"{file.path} ({file.size} bytes)" for file in left_out[:_NAMED])
    but = f" but files that are too large to be kept ({names})" if left_out else ""
    return NothingToDeliver(workspace=workspace, but=but)


def _commit_of(states: States, workspace: Workspace, order: Push, tree: str) -> str:
    repository = states.repository(workspace.id)
    known = states.storage.record(workspace.id).pushed.get(order.branch, ())
    about = described(order.text)
    for commit in reversed(known):
        if _tree_and_text(states.storage.git, repository, commit) == (tree, about.message.strip()):
            return commit
    return committed(states.storage.git, repository, tree, workspace.commit, about, _moment(states, order))


def committed(git: Git, repository: Path, tree: str, parent: str | None, text: CommitText, when: str) -> str:
    """A commit of a tree."""
    about = described(text)
    env = {
        f"GIT_{who}_{name}": value for who in ("AUTHOR", "COMMITTER") for name, value in _identity(about, when).items()
    }
    parents = ("-p", parent) if parent is not None else ()
    given = about.message.encode()
    made = git.run("commit-tree", *parents, "-F", "-", tree, repository=repository, given=given, env=env)
    return made.decode().strip()


def described(text: CommitText) -> CommitText:
    message = text.message.replace("\0", "").strip()
    if not message:
        raise InvalidRequest(reason="message: a commit needs a message.", errors={"message": ["is empty"]})
    name = _IDENTITY.sub("", text.author_name).strip() or "Ostler"
    email = _IDENTITY.sub("", text.author_email).strip() or "ostler@localhost"
    return CommitText(message=f"{message}\n", author_name=name, author_email=email)


def _identity(text: CommitText, when: str) -> dict[str, str]:
    return {"NAME": text.author_name, "EMAIL": text.author_email, "DATE": when}


def _moment(states: States, order: Push) -> str:
    return next(each.created_at for each in states.storage.snapshots(order.workspace) if each.id == order.snapshot)


def _tree_and_text(git: Git, repository: Path, commit: str) -> tuple[str, str]:
    try:
        shown = git.run("show", "-s", "--format=%T%n%B", commit, repository=repository)
    except GitFailed:
        return "", ""
    tree, _, message = shown.decode(errors="replace").partition("\n")
    return tree, message.strip()


class _Pushing:
    """One push, tried as often as need be."""

    def __init__(self, states: States, address: Address, remote: Remote, order: Push, commit: str) -> None:
        self._states = states
        self._address = address
        self._remote = remote
        self._order = order
        self._commit = commit

    def run(self) -> None:
        """Look what the branch is now, and replace only what is ours."""
        there = self._there()
        if there == self._commit:
            return
        if there and there not in self._states.storage.record(self._order.workspace).pushed[self._order.branch]:
            raise DeliveryFailed(
                what="branch",
                reason=f"'{self._order.branch}' is on the remote already, and not from here. Choose another name.",
            )
        ref = f"refs/heads/{self._order.branch}"
        lease = f"--force-with-lease={ref}:{there}"
        self._git("push", "--quiet", "--no-verify", lease, "--", self._address.url, f"{self._commit}:{ref}")

    def _there(self) -> str:
        listed = self._git("ls-remote", "--heads", "--", self._address.url, f"refs/heads/{self._order.branch}")
        return listed.decode().partition("\t")[0]

    def _git(self, *arguments: str) -> bytes:
        repository = self._states.repository(self._order.workspace)
        return self._states.storage.git.run(*arguments, repository=repository, remote=self._remote)


def _patiently(work: Callable[[], None], sleep: Callable[[float], None]) -> None:
    """Try again when the network was the problem."""
    pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE, tries=_TRIES)
    while True:
        try:
            return work()
        except GitFailed as error:
            if not _PASSING.search(str(error)) or (pause := next(pauses, None)) is None:
                raise DeliveryFailed(what="branch", reason=str(error)) from error
            sleep(pause)
