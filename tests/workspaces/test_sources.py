"""Where workspaces come from: commits, branches, folders, nothing; and what is kept of them."""

import asyncio
import os
from pathlib import Path

import pytest

from ostler.base.addresses import AddressRules
from ostler.base.errors import (
    InvalidRequest,
    RepositoryFailed,
    RepositoryRefused,
    SettingsError,
    Unprocessable,
)
from ostler.runner.file_trees.unpacking import UnpackLimits
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.orders import Credential, EmptySource, FolderSource, GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy
from tests.support.patience import wait_until
from tests.support.places import (
    content_of,
    contents,
    git,
    inside,
    make_repository,
    opened,
    order,
    summary,
    tree_hash,
)

_FILES = 10_000


def _large_repository(folder: Path, files: int) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    blob = b"blob\nmark :1\ndata 6\nhello\n\n"
    names = b"".join(b"M 100644 :1 d%d/f%d\n" % (number % 100, number) for number in range(files))
    commit = b"commit refs/heads/main\ncommitter Ann <ann@example.com> 1700000000 +0000\ndata 3\none\n"
    git(folder, "fast-import", "--quiet", given=blob + commit + names)
    return folder


async def test_a_branch_a_tag_a_commit_and_the_head_can_be_asked_for(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    first = git(project, "rev-parse", "HEAD")
    git(project, "tag", "-a", "v1", "-m", "one")
    git(project, "checkout", "-q", "-b", "feature/x")
    (project / "README.md").write_text("changed\n")
    git(project, "commit", "-qam", "two")
    second = git(project, "rev-parse", "HEAD")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = [
            await service.create(Order(source=GitSource(url=str(project), branch=branch, commit=commit)))
            for branch, commit in [
                ("main", None),
                ("feature/x", None),
                ("v1", None),
                (None, None),
                (None, first),
                ("main", first[:10]),
            ]
        ]
        assert [workspace.commit for workspace in made] == [first, second, first, second, first, first]
        assert [workspace.branch for workspace in made] == ["main", "feature/x", None, None, None, "main"]
        refs = await service.refs(GitSource(url=str(project)))
        assert refs.default_branch == "feature/x"
        assert [(ref.kind, ref.name) for ref in refs.refs] == [
            ("branch", "feature/x"),
            ("branch", "main"),
            ("tag", "v1"),
        ]


async def test_a_new_commit_is_fetched_and_progress_is_told(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    told: list[str] = []
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        await service.create(order(project))
        (project / "README.md").write_text("changed\n")
        git(project, "commit", "-qam", "two")
        workspace = await service.create(order(project), progress=told.append)
        assert workspace.commit == git(project, "rev-parse", "HEAD")
        assert any(line.endswith(": 100%") for line in told)


@pytest.mark.parametrize(
    ("branch", "commit", "reason"),
    [("nope", None, "no branch or tag 'nope'"), (None, "f" * 40, "f{40}"), (None, "1234567", "no commit 1234567")],
)
async def test_what_the_remote_does_not_have_is_said(
    branch: str | None, commit: str | None, reason: str, repository: Path, tmp_path: Path
) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        with pytest.raises(RepositoryFailed, match=reason):
            await service.create(order(repository, branch=branch, commit=commit))
        assert service.all() == []


async def test_an_empty_or_broken_repository_is_said(tmp_path: Path) -> None:
    empty, broken = tmp_path / "origin" / "empty", tmp_path / "origin" / "broken"
    for folder in (empty, broken):
        folder.mkdir(parents=True)
    git(empty, "init", "-q")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        for folder in (empty, broken):
            with pytest.raises(RepositoryFailed, match=folder.name):
                await service.create(order(folder, branch=None))


async def test_a_head_that_leads_nowhere_does_not_matter_when_a_branch_is_named(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    git(project, "symbolic-ref", "HEAD", "refs/heads/nowhere")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        assert (await service.create(order(project, branch="main"))).branch == "main"
        with pytest.raises(RepositoryFailed, match="HEAD"):
            await service.create(order(project, branch=None))


async def test_a_remote_by_ssh_is_offered_the_given_key_and_no_other(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    program, said = tmp_path / "bin" / "ssh", tmp_path / "said"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {said}\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o755)
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}", "SSH_AUTH_SOCK": "/the/agent/of/the/user"}
    options = Options(policy=Policy(addresses=AddressRules.reading(("host.example",))))
    service = await WorkspaceLibrary.open(tmp_path / "state", environ=environ, options=options)
    key = Credential(ssh_key_file=str(tmp_path / "a key"), ssh_known_hosts_file="/hosts")
    for credential in (None, key):
        source = GitSource(url=f"ssh://me@host.example{project}", branch="main", credential=credential)
        workspace = await service.create(Order(source=source, scope=str(credential is None)))
        assert workspace.url == f"ssh://me@host.example{project}"
    await service.close()
    words = said.read_text().splitlines()
    assert [word for word in words if word.startswith("IdentityFile=")] == [
        "IdentityFile=none",
        f"IdentityFile={tmp_path}/a key",
    ]
    assert {"IdentityAgent=none", "IdentitiesOnly=yes", "StrictHostKeyChecking=yes", "me@host.example"} <= set(words)


async def test_a_commit_with_too_much_in_it_is_not_laid_out(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    (project / "zeros").write_bytes(bytes(3 * 2**20))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "bomb")
    async with opened(tmp_path / "state", tmp_path, unpacking=UnpackLimits(total_bytes=2**20)) as service:
        with pytest.raises(RepositoryFailed, match="max_unpacked_bytes"):
            await service.create(order(project))
        assert list((tmp_path / "state" / "bases").iterdir()) == []


async def test_a_tree_without_end_is_not_laid_out(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    tree = git(project, "hash-object", "-w", "--stdin", given=b"x")
    kind, mode = "blob", "100644"
    for _ in range(9):  # 10 names in each of 9 folders: 10^9 files in 9 objects
        listing = "".join(f"{mode} {kind} {tree}\t{number}\n" for number in range(10))
        tree, kind, mode = git(project, "mktree", given=listing.encode()), "tree", "040000"
    git(project, "reset", "-q", "--soft", git(project, "commit-tree", "-m", "bomb", tree))
    async with opened(tmp_path / "state", tmp_path, unpacking=UnpackLimits(total_bytes=2**17)) as service:
        with pytest.raises(RepositoryFailed, match="max_unpacked_bytes"):
            await service.create(order(project))


async def test_a_fetch_that_would_fill_the_disk_is_broken_off(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    (project / "noise").write_bytes(os.urandom(3 * 2**20))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "large")
    async with opened(tmp_path / "state", tmp_path, max_repository_bytes=2**20) as service:
        with pytest.raises(RepositoryFailed, match="max_repository_bytes"):
            await service.create(order(project))
        assert list((tmp_path / "state" / "mirrors").rglob("tmp_*")) == []


async def test_a_scope_does_not_see_what_another_fetched(repository: Path, tmp_path: Path) -> None:
    source = GitSource(url=str(repository), branch="main")
    async with opened(tmp_path / "state", repository.parent) as service:
        await service.create(Order(source=source, scope="one"))
        await service.create(Order(source=source, scope="two"))
        assert len(list((tmp_path / "state" / "mirrors").iterdir())) == 2
        assert len(list((tmp_path / "state" / "bases").iterdir())) == 2


async def test_fifty_workspaces_of_ten_thousand_files_are_made_at_once_from_one_base(tmp_path: Path) -> None:
    project = _large_repository(tmp_path / "origin" / "large", _FILES)
    before = tree_hash(project)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        first = await service.create(order(project, "overlay"))
        wish = order(project, "overlay", commit=first.commit)
        made = await asyncio.gather(*(service.create(wish) for _ in range(50)))
        await asyncio.gather(*(inside(service, each, f"echo {each.id} > d0/f0; rm -r d1") for each in made))
        found = await asyncio.gather(*(inside(service, each, "cat d0/f0; find . -name 'f*' | wc -l") for each in made))
        assert found == [f"{each.id}\n{_FILES - 100}\n" for each in made]
        assert await inside(service, first, "cat d0/f0; git status --porcelain") == "hello\n"
        assert len(list((tmp_path / "state" / "bases").iterdir())) == 1
        difference = await service.files.diff(made[7].id, text=False)
        assert (difference.files_changed, difference.removed) == (101, 101)
        await asyncio.gather(*(service.destroy(each.id) for each in made))
    assert tree_hash(project) == before


async def test_a_folder_becomes_a_private_copy_with_its_uncommitted_changes(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    (project / "README.md").write_text("not committed\n")
    (project / "scratch.log").write_text("ignored, but there\n")
    before = tree_hash(project)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        workspace = await service.create(Order(source=FolderSource(path=str(project))))
        assert await contents(service, workspace) == content_of(project)
        assert (await service.files.diff(workspace.id)).files == ()
        await inside(
            service, workspace, "echo more >> README.md; git commit -qam x --author 'a <b@c>' || true; rm -rf src"
        )
        assert summary(await service.files.diff(workspace.id)) == {
            "README.md": "modified",
            "src/main.py": "deleted",
            "src/old.py": "deleted",
        }
    assert tree_hash(project) == before


async def test_a_folder_in_place_is_worked_on_itself_and_only_when_said_so(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        workspace = await service.create(Order(source=FolderSource(path=str(project), in_place=True)))
        assert (workspace.provider, workspace.path, workspace.visible) == ("in-place", str(project), True)
        await inside(service, workspace, "echo more >> README.md; echo noise > x.log; echo y > y.txt")
        assert (project / "README.md").read_text().endswith("more\n")
        assert summary(await service.files.diff(workspace.id)) == {"README.md": "modified", "y.txt": "added"}
        snapshot = await service.snapshot(workspace.id)
        (project / "y.txt").unlink()
        assert summary(await service.files.diff(workspace.id, old=snapshot.id)) == {"y.txt": "deleted"}
        with pytest.raises(Unprocessable, match="cannot be restored"):
            await service.restore(workspace.id, snapshot.id)
        await service.destroy(workspace.id)
    assert (project / "README.md").exists()


async def test_folders_outside_the_allowed_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "origin" / "link").symlink_to(tmp_path / "secret")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        for path in (tmp_path / "secret", tmp_path / "origin" / "link", tmp_path / "origin" / ".." / "secret"):
            for in_place in (False, True):
                with pytest.raises(RepositoryRefused, match="not a folder below"):
                    await service.create(Order(source=FolderSource(path=str(path), in_place=in_place)))
            with pytest.raises(RepositoryRefused):
                await service.create(order(path))


async def test_a_linked_worktree_is_not_copied_because_its_git_folder_is_elsewhere(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    git(project, "worktree", "add", "-q", str(tmp_path / "origin" / "linked"))
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        with pytest.raises(RepositoryRefused, match="elsewhere"):
            await service.create(Order(source=FolderSource(path=str(tmp_path / "origin" / "linked"))))


async def test_a_workspace_may_begin_empty_or_with_a_few_files(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        empty = await service.create(Order(source=EmptySource()))
        assert await inside(service, empty, "ls -A") == ""
        started = await service.create(Order(source=EmptySource(files={"a/b.txt": "hello\n"})))
        assert await inside(service, started, "cat a/b.txt") == "hello\n"
        with pytest.raises(InvalidRequest, match="not a path inside"):
            await service.create(Order(source=EmptySource(files={"../x": "out"})))


async def test_unused_bases_are_removed_the_oldest_first(tmp_path: Path) -> None:
    async with opened(tmp_path / "state", kept_bases=2) as service:
        bases = tmp_path / "state" / "bases"
        kept = await service.create(Order(source=EmptySource(files={"kept": ""})))
        for number in range(5):
            made = await service.create(Order(source=EmptySource(files={f"f{number}": ""})))
            await service.destroy(made.id)
        wait_until(lambda: len(list(bases.iterdir())) == 3, what="unused bases to go")
        assert await inside(service, kept, "ls") == "kept\n"
        again = await service.create(Order(source=EmptySource(files={"f0": ""})))
        assert await inside(service, again, "ls") == "f0\n"


async def test_a_second_runner_is_kept_out(tmp_path: Path) -> None:
    async with opened(tmp_path / "state"):
        with pytest.raises(SettingsError, match="another runner uses it"):
            async with opened(tmp_path / "state"):
                pass


async def test_an_order_that_is_called_off_leaves_nothing(tmp_path: Path) -> None:
    project = _large_repository(tmp_path / "origin" / "large", 3000)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        told = asyncio.Event()
        making = asyncio.create_task(service.create(order(project, "copy"), progress=lambda _: told.set()))
        await asyncio.wait_for(told.wait(), 60)
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
        assert service.all() == []
        wait_until(lambda: not any((tmp_path / "state" / "workspaces").iterdir()), what="half a workspace to go")
