"""Every snapshot provider behaves the same; one suite, one row per provider."""

from pathlib import Path

import pytest

from ostler.base.errors import ProviderUnavailable, SnapshotNotFound, WorkspaceNotFound
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.wire.workspaces import SnapshotProvider
from tests.support.patience import wait_until
from tests.support.places import content_of, contents, git, inside, opened, order, summary, tree_hash
from tests.workspaces.conftest import Ground

_WORK = """
echo more >> README.md
chmod +x src/main.py
git mv src/old.py src/new.py
rm -r gone && mkdir gone && echo c > gone/c.txt
rm run.sh && mkdir run.sh && echo inner > run.sh/inner
rm link && echo file > link
printf 'echo one\\r\\necho changed\\r\\n' > dos.bat
printf '\\000\\001\\002' > data.bin
echo noise > noise.log
mkdir build && echo artefact > build/out
echo 'neu' > 'ünï.txt'
ln -s /etc/passwd outside
"""
_WORKED = {
    "README.md": "modified",
    "data.bin": "modified",
    "dos.bat": "modified",
    "gone/a.txt": "deleted",
    "gone/b.txt": "deleted",
    "gone/c.txt": "added",
    "link": "type_changed",
    "outside": "added",
    "run.sh": "deleted",
    "run.sh/inner": "added",
    "src/main.py": "modified",
    "src/new.py": "renamed",
    "ünï.txt": "added",
}


async def test_a_workspace_holds_what_the_commit_holds(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        assert (workspace.provider, workspace.branch) == (ground.kind, "main")
        assert workspace.commit == git(repository, "rev-parse", "HEAD")
        assert await contents(service, workspace) == content_of(repository)
        assert await inside(service, workspace, "git status --porcelain; git branch --show-current") == "main\n"
        assert (await service.files.diff(workspace.id)).files == ()


async def test_changes_reach_neither_the_original_nor_the_base_nor_a_sibling(ground: Ground, repository: Path) -> None:
    before = tree_hash(repository)
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        one = await service.create(order(repository, ground.kind))
        two = await service.create(order(repository, ground.kind))
        await inside(service, one, _WORK)
        assert await contents(service, two) == content_of(repository)
        three = await service.create(order(repository, ground.kind))
        assert await contents(service, three) == content_of(repository)
    assert tree_hash(repository) == before


async def test_the_difference_is_what_happened(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        await inside(service, workspace, _WORK)
        found = await service.files.diff(workspace.id)
        assert summary(found) == _WORKED
        changed = {file.path: file for file in found.files}
        assert (changed["src/new.py"].old_path, changed["data.bin"].binary) == ("src/old.py", True)
        assert (changed["src/main.py"].old_mode, changed["src/main.py"].new_mode) == ("100644", "100755")
        assert changed["dos.bat"].diff.endswith("@@ -1,2 +1,2 @@\n echo one\n-echo two\n+echo changed\n")


async def test_a_restored_workspace_is_exactly_what_it_was(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        first = await service.snapshot(workspace.id, "first")
        await inside(service, workspace, _WORK)
        second = await service.snapshot(workspace.id, "second")
        worked = await contents(service, workspace)
        await inside(service, workspace, "rm -rf ./* && echo nothing > nothing")
        await service.restore(workspace.id, second.id)
        assert await contents(service, workspace) == worked
        assert (
            await inside(service, workspace, "git diff --cached --name-only --no-renames") == "src/new.py\nsrc/old.py\n"
        )
        await service.restore(workspace.id, first.id)
        assert await contents(service, workspace) == content_of(repository)
        assert [kept.label for kept in service.snapshots(workspace.id)] == ["first", "second"]
        assert summary(await service.files.diff(workspace.id, old=first.id, new=second.id)) == _WORKED


async def test_a_fork_begins_as_its_snapshot_and_goes_its_own_way(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        await inside(service, workspace, _WORK)
        snapshot = await service.snapshot(workspace.id)
        worked = await contents(service, workspace)
        fork = await service.fork(snapshot.id)
        await inside(service, workspace, "rm -rf src")
        assert (await contents(service, fork), fork.forked_from) == (worked, snapshot.id)
        assert summary(await service.files.diff(fork.id)) == _WORKED
        await inside(service, fork, "echo fork > forked.txt; rm gone/c.txt")
        assert summary(await service.files.diff(fork.id, old=snapshot.id)) == {
            "forked.txt": "added",
            "gone/c.txt": "deleted",
        }


async def test_a_fork_outlives_the_workspace_it_came_from(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        await inside(service, workspace, _WORK)
        snapshot = await service.snapshot(workspace.id)
        worked = await contents(service, workspace)
        fork = await service.fork(snapshot.id)
        await service.destroy(workspace.id)
        with pytest.raises(WorkspaceNotFound):
            service.get(workspace.id)
        with pytest.raises(SnapshotNotFound):
            await service.fork(snapshot.id)
        assert await contents(service, fork) == worked
        assert summary(await service.files.diff(fork.id)) == _WORKED


async def test_a_destroyed_workspace_is_removed_behind_the_scenes(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        workspace = await service.create(order(repository, ground.kind))
        await inside(service, workspace, f"{_WORK}mkdir locked && touch locked/x && chmod 000 locked")
        await service.snapshot(workspace.id)
        await service.destroy(workspace.id)
        assert service.all() == []
        left = [ground.root / name for name in ("trash", "workspaces", "snapshots", "records")]
        wait_until(lambda: not any(any(folder.iterdir()) for folder in left), what="the trash to be emptied")


async def test_workspaces_and_snapshots_survive_a_restart(ground: Ground, repository: Path) -> None:
    first = opened(ground.root, repository.parent, zfs_command=ground.zfs_command)
    service = await first.__aenter__()
    workspace = await service.create(order(repository, ground.kind))
    await inside(service, workspace, _WORK)
    snapshot = await service.snapshot(workspace.id, "kept")
    worked = await contents(service, workspace)
    await service.close()
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as again:
        assert again.get(workspace.id) == workspace
        assert again.snapshots(workspace.id) == [snapshot]
        assert await contents(again, workspace) == worked
        assert summary(await again.files.diff(workspace.id)) == _WORKED
        await again.restore(workspace.id, snapshot.id)
        assert await contents(again, workspace) == worked


async def _generations(service: WorkspaceLibrary, workspace: str, count: int) -> str:
    for number in range(count):
        await inside(service, workspace, f"echo {number} > generation; echo {number} > file{number}")
        workspace = (await service.fork((await service.snapshot(workspace)).id)).id
    return workspace


@pytest.mark.parametrize("kind", ["overlay", "copy"])
async def test_forks_of_forks_of_forks_are_still_right(
    kind: SnapshotProvider, tmp_path: Path, repository: Path
) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        first = await service.create(order(repository, kind))
        last = await _generations(service, first.id, 20)  # more than an overlay stacks
        wanted = {"generation": "added", **{f"file{number}": "added" for number in range(20)}}
        assert await inside(service, last, "cat generation file0 file19") == "19\n0\n19\n"
        assert summary(await service.files.diff(last)) == wanted


async def test_detection_says_what_works_and_why_the_rest_does_not(ground: Ground, repository: Path) -> None:
    async with opened(ground.root, repository.parent, zfs_command=ground.zfs_command) as service:
        verdicts = {verdict.provider: verdict for verdict in service.storage.providers.verdicts()}
        assert verdicts[ground.kind].works
        assert all((verdict.why_not is None) == verdict.works for verdict in verdicts.values())
        assert list((ground.root / "incoming").iterdir()) == []


async def test_a_strict_wish_that_cannot_be_met_is_refused(repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        with pytest.raises(ProviderUnavailable, match="in-place: it must be asked for with the source"):
            await service.create(order(repository, "in-place"))
        with pytest.raises(ProviderUnavailable, match="zfs: the program zfs is not installed"):
            await service.create(order(repository, "zfs"))
        assert service.all() == []


async def test_a_loose_wish_falls_to_the_next_and_tells_why(repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        wish = order(repository, "zfs", "copy")
        workspace = await service.create(wish)
        assert workspace.provider == "copy"
        assert [(verdict.provider, verdict.works) for verdict in workspace.refused] == [("zfs", False)]
