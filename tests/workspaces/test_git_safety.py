"""Traps that an agent can lay for whoever runs git in its tree: plain git falls into each, Ostler into none."""

import io
import os
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from ostler.base.errors import InvalidRequest, RepositoryRefused
from ostler.runner.workspaces.git import Git, GitFailed, Remote
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy, allowed
from ostler.wire.workspaces import SnapshotProvider
from tests.support.places import git, inside, make_repository, opened, order, summary


class Trap(NamedTuple):
    """How it is laid, and the innocent command that springs it; MARK is a file that must never appear."""

    lay: str
    spring: str


_TRAPS = {
    "fsmonitor": Trap("git config core.fsmonitor 'touch MARK; false'", "git status"),
    "clean filter": Trap(
        "git config filter.evil.clean 'touch MARK; cat' && echo '*.txt filter=evil' >> .gitattributes; echo x > x.txt",
        "git add -A",
    ),
    "process filter": Trap(
        "git config filter.evil.process 'touch MARK; false'; echo '* filter=evil' >> .gitattributes; echo x > x.txt",
        "git add -A || true",
    ),
    "external diff": Trap("git config diff.external 'touch MARK; true' && echo x >> README.md", "git diff"),
    "text conversion": Trap(
        "git config diff.evil.textconv 'touch MARK; cat'; echo '*.md diff=evil' >> .gitattributes; echo x >> README.md",
        "git diff",
    ),
    "hook": Trap(
        "mkdir -p .git/hooks && printf '#!/bin/sh\\ntouch MARK\\n' > .git/hooks/post-index-change"
        " && chmod +x .git/hooks/post-index-change && echo x > x.txt",
        "git add -A",
    ),
    "hooks elsewhere": Trap(
        "mkdir h && printf '#!/bin/sh\\ntouch MARK\\n' > h/pre-commit && chmod +x h/pre-commit"
        " && git config core.hooksPath h && echo x > x.txt",
        "git add -A; git -c user.name=a -c user.email=b@c commit -qm x",
    ),
    "included configuration": Trap(
        "printf '[core]\\n\\tfsmonitor = touch MARK; false\\n' > conf && git config include.path ../conf", "git status"
    ),
    "alias of a command": Trap("git config alias.record '!touch MARK'", "git record"),
    "nested repository": Trap(
        "git init -q inner && cd inner && echo x > x && git add x && git -c user.name=a -c user.email=b@c commit -qm x"
        " && git config core.fsmonitor 'touch MARK; false' && cd .. && git add inner 2>/dev/null && echo y > inner/x",
        "git status",
    ),
    "tree elsewhere": Trap(
        "git config core.worktree /etc && git config core.fsmonitor 'touch MARK; false'", "git status || true"
    ),
    "signing program": Trap(
        "printf '#!/bin/sh\\ntouch MARK\\nfalse\\n' > gpg.sh && chmod +x gpg.sh && git config gpg.program ./gpg.sh"
        " && git config commit.gpgSign true && echo x > x.txt && git add x.txt",
        "git -c user.name=a -c user.email=b@c commit -qm x || true",
    ),
}


async def _use(service: WorkspaceLibrary, workspace: str) -> None:
    """Everything the server ever does with a workspace."""
    await service.files.diff(workspace)
    snapshot = await service.snapshot(workspace)
    await service.files.write_patch(workspace, io.BytesIO())
    fork = await service.fork(snapshot.id)
    await service.files.diff(fork.id, old=snapshot.id)
    await service.restore(workspace, snapshot.id)


@pytest.mark.parametrize("name", _TRAPS)
async def test_a_trap_that_catches_plain_git_does_not_catch_us(name: str, repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    lay, spring = (text.replace("MARK", str(mark)) for text in _TRAPS[name])
    async with opened(tmp_path / "state", repository.parent) as service:
        victim = await service.create(order(repository, "copy"))
        await inside(service, victim, f"{lay}\n{spring}")
        assert mark.exists(), "this is no trap"
        mark.unlink()
        workspace = await service.create(order(repository, "copy"))
        await inside(service, workspace, lay)
        mark.unlink(missing_ok=True)
        await _use(service, workspace.id)
        assert not mark.exists()


async def test_git_s_own_folder_replaced_by_a_link_or_a_file_is_no_way_out(repository: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    git(other, "config", "core.fsmonitor", f"touch {tmp_path / 'mark'}; false")
    async with opened(tmp_path / "state", repository.parent) as service:
        workspace = await service.create(order(repository, "copy"))
        await inside(service, workspace, f"rm -rf .git && echo 'gitdir: {other}/.git' > .git && echo x >> README.md")
        await _use(service, workspace.id)
        assert summary(await service.files.diff(workspace.id)) == {"README.md": "modified"}
        await inside(service, workspace, f"rm .git && ln -s {other}/.git .git")
        await _use(service, workspace.id)
        assert summary(await service.files.diff(workspace.id)) == {"README.md": "modified"}
        assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("kind", ["overlay", "copy"])
async def test_a_repository_inside_the_tree_is_not_looked_into(
    kind: SnapshotProvider, repository: Path, tmp_path: Path
) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        workspace = await service.create(order(repository, kind))
        await inside(service, workspace, "git init -q fresh && echo x > fresh/x && git init -q src && echo y > src/y")
        # a folder with tracked files stays what it is, whatever the agent puts beside them
        assert summary(await service.files.diff(workspace.id)) == {"src/y": "added"}


async def test_submodules_are_neither_fetched_nor_lost(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "origin" / "library")
    project = make_repository(tmp_path / "origin" / "project")
    git(project, "submodule", "add", "-q", str(library), "lib")
    mark = tmp_path / "mark"
    git(project, "config", "-f", ".gitmodules", "submodule.lib.url", f"ext::sh -c touch%20{mark}")
    git(project, "commit", "-qam", "a submodule with a trap")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        workspace = await service.create(order(project, "overlay"))
        assert (await inside(service, workspace, "ls lib"), mark.exists()) == ("", False)
        await inside(service, workspace, "echo x > lib/x && echo y >> README.md")
        assert summary(await service.files.diff(workspace.id)) == {"README.md": "modified"}
        await inside(service, workspace, "rm -r lib")
        assert summary(await service.files.diff(workspace.id)) == {"README.md": "modified", "lib": "deleted"}
        assert not mark.exists()


_ODD_ADDRESSES = [
    "ext::sh -c touch% MARK",
    "ext::sh%20-c%20touch%20MARK",
    "--upload-pack=touch MARK",
    "-uMARK",
    "ssh://-oProxyCommand=touch%20MARK/x",
    "ssh://-oProxyCommand=touchMARK/x",
    "-oProxyCommand=x:y",
    "git@-oProxyCommand=touch:x",
    "file:///etc",
    "/etc",
    "/nonexistent",
    "../x",
    "http://127.0.0.1/x",
    "git://127.0.0.1/x",
    "https://user:secret-word@example.com/x",
    "https://secret-word@example.com/x",
    "https:///x",
    "https://exa mple.com/x",
    "https://example.com:port/x",
    "fd::17/x",
    "",
    "x" * 5000,
    "https://example.com/\n[core]",
]


@pytest.mark.parametrize("url", _ODD_ADDRESSES)
async def test_an_address_that_is_no_allowed_repository_is_refused(url: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        with pytest.raises(RepositoryRefused) as refused:
            await service.create(Order(source=GitSource(url=url.replace("MARK", str(mark)))))
        assert "secret-word" not in str(refused.value)
        with pytest.raises(RepositoryRefused):
            await service.refs(GitSource(url=url.replace("MARK", str(mark))))
    assert not mark.exists()


@pytest.mark.parametrize(
    "name", ["--upload-pack=x", "-b", "a..b", "a b", "a~1", "a:b", "@", "a.lock", "", "/a", "a\nb", "a\0b"]
)
async def test_a_branch_that_cannot_be_one_is_refused(name: str, repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        with pytest.raises(InvalidRequest, match="branch:"):
            await service.create(order(repository, branch=name))


@pytest.mark.parametrize("name", ["HEAD", "--all", "main", "12", "g" * 40, "a" * 65])
async def test_a_commit_that_cannot_be_one_is_refused(name: str, repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        with pytest.raises(InvalidRequest, match="commit:"):
            await service.create(order(repository, branch=None, commit=name))


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://git.example.com/a/b", True),
        ("https://GIT.EXAMPLE.COM/a/b.git", True),
        ("git@git.example.com:a/b.git", True),
        ("ssh://someone@git.example.com:2222/a/b", True),
        ("https://evilexample.com/a/b", False),
        ("https://example.com.evil.test/a/b", False),
        ("https://example.com@evil.test/a/b", False),
        ("http://git.example.com/a/b", False),
    ],
)
def test_only_hosts_and_protocols_on_the_list_are_allowed(url: str, is_allowed: bool) -> None:
    policy = Policy(hosts=("*.example.com",))
    with nullcontext() if is_allowed else pytest.raises(RepositoryRefused):
        allowed(url, policy)


def test_a_remote_that_never_answers_is_given_up_with_the_time_it_had(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/team/project.git"
        with pytest.raises(GitFailed, match="ls-remote was not done after 1 seconds"):
            Git({"PATH": os.environ["PATH"]}, tmp_path).run(
                "ls-remote", "--", url, remote=Remote(protocols=("http",)), seconds=1
            )
