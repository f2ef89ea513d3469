"""Checkouts of people in every state that git knows: their files are seen, and nothing in them is run or touched."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ostler.base.errors import OstlerError
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import FolderSource, Order
from ostler.runner.workspaces.recorder import RecordLimits
from ostler.wire.workspaces import Workspace
from tests.support.places import git, make_repository, opened, summary, tree_hash


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[WorkspaceLibrary]:
    """A library that may use what is below `origin`, and keeps files of up to a kilobyte."""
    (tmp_path / "origin").mkdir()
    limits = RecordLimits(file_bytes=1024 * 8)
    async with opened(tmp_path / "state", tmp_path / "origin", recording=limits) as made:
        yield made


@pytest.fixture
def project(library: WorkspaceLibrary, tmp_path: Path) -> Path:
    return make_repository(tmp_path / "origin" / "project")


async def own(library: WorkspaceLibrary, folder: Path) -> Workspace:
    return await library.create(Order(source=FolderSource(path=str(folder), in_place=True)))


async def changes(library: WorkspaceLibrary, folder: Path) -> dict[str, str]:
    made = await own(library, folder)
    return summary(await library.files.diff(made.id))


async def test_a_clean_checkout_with_every_odd_file_has_no_changes_and_is_left_alone(
    library: WorkspaceLibrary, project: Path
) -> None:
    git(project, "status")
    before = tree_hash(project)
    made = await own(library, project)
    assert (made.branch, made.commit) == ("main", git(project, "rev-parse", "HEAD"))
    assert summary(await library.files.diff(made.id)) == {}
    await library.snapshot(made.id)
    await library.destroy(made.id)
    assert tree_hash(project) == before


async def test_staged_changed_removed_and_untracked_files_are_seen_and_ignored_ones_are_not(
    library: WorkspaceLibrary, project: Path
) -> None:
    (project / "README.md").write_text("changed\n")
    (project / "src" / "old.py").unlink()
    (project / "staged.txt").write_text("staged\n")
    git(project, "add", "staged.txt")
    git(project, "add", "-N", "run.sh")
    (project / "run.sh").chmod(0o644)
    (project / "link").unlink()
    (project / "link").symlink_to("run.sh")
    (project / "noise.log").write_text("ignored\n")
    (project / ".git" / "info" / "exclude").write_text("mine/\n")
    (project / "mine").mkdir()
    (project / "mine" / "x").write_text("ignored too\n")
    assert await changes(library, project) == {
        "README.md": "modified",
        "src/old.py": "deleted",
        "staged.txt": "added",
        "run.sh": "modified",
        "link": "modified",
    }


async def test_the_top_of_the_checkout_counts_wherever_in_it_the_agent_works(
    library: WorkspaceLibrary, project: Path
) -> None:
    (project / "README.md").write_text("changed\n")
    made = await own(library, project / "src")
    assert made.path == str(project)
    assert summary(await library.files.diff(made.id)) == {"README.md": "modified"}


async def test_a_checkout_without_a_commit_shows_all_that_is_there(library: WorkspaceLibrary, tmp_path: Path) -> None:
    fresh = tmp_path / "origin" / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q", "-b", "main")
    (fresh / "a.txt").write_text("a\n")
    made = await own(library, fresh)
    assert (made.commit, made.branch) == (None, "main")
    assert summary(await library.files.diff(made.id)) == {"a.txt": "added"}


async def test_a_detached_head_and_a_linked_worktree_are_checkouts_too(
    library: WorkspaceLibrary, project: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "origin" / "linked"
    git(project, "worktree", "add", "-q", "--detach", str(linked))
    (linked / "a.txt").write_text("a\n")
    made = await own(library, linked)
    assert (made.path, made.branch) == (str(linked), None)
    assert summary(await library.files.diff(made.id)) == {"a.txt": "added"}


async def test_a_merge_under_way_is_shown_with_its_conflicts_and_stays_under_way(
    library: WorkspaceLibrary, project: Path
) -> None:
    for branch, text in (("one", "one\n"), ("two", "two\n")):
        git(project, "checkout", "-q", "-b", branch, "main")
        (project / "README.md").write_text(text)
        git(project, "commit", "-qam", branch)
    with pytest.raises(AssertionError, match=r"CONFLICT|merge"):
        git(project, "merge", "one")
    unmerged = git(project, "ls-files", "--unmerged")
    made = await own(library, project)
    found = await library.files.diff(made.id)
    assert summary(found) == {"README.md": "modified"}
    assert "+<<<<<<< HEAD" in found.files[0].diff
    assert git(project, "ls-files", "--unmerged") == unmerged


async def test_large_files_are_named_and_submodules_and_inner_repositories_are_left_alone(
    library: WorkspaceLibrary, project: Path, tmp_path: Path
) -> None:
    inner = make_repository(tmp_path / "inner")
    git(project, "submodule", "add", "-q", str(inner), "lib")
    git(project, "commit", "-qm", "with a submodule")
    (project / "lib" / "README.md").write_text("changed inside\n")
    make_repository(project / "another")
    (project / "huge.bin").write_bytes(b"x" * 1024 * 9)
    made = await own(library, project)
    found = await library.files.diff(made.id)
    assert summary(found) == {}
    assert [(file.path, file.size) for file in found.too_large] == [("huge.bin", 1024 * 9)]


async def test_hooks_filters_and_watchers_of_a_checkout_are_not_run(
    library: WorkspaceLibrary, project: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    for name in ("core.fsmonitor", "filter.lfs.clean", "filter.lfs.process", "filter.lfs.smudge", "diff.lfs.textconv"):
        git(project, "config", name, f"touch {ran}; cat")
    for hook in ("post-index-change", "pre-commit", "reference-transaction"):
        (project / ".git" / "hooks").mkdir(exist_ok=True)
        (project / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (project / ".git" / "hooks" / hook).chmod(0o755)
    (project / "model.big").write_text("changed\n")
    assert await changes(library, project) == {"model.big": "modified"}
    assert not ran.exists()


async def test_an_index_in_two_files_is_read_too(library: WorkspaceLibrary, project: Path) -> None:
    git(project, "update-index", "--split-index")
    (project / "README.md").write_text("changed\n")
    assert await changes(library, project) == {"README.md": "modified"}


async def test_what_is_no_checkout_is_refused_with_the_reason(library: WorkspaceLibrary, project: Path) -> None:
    origin = project.parent
    git(project, "clone", "-q", "--bare", ".", str(origin / "bare.git"))
    (origin / "plain").mkdir()
    for folder in (origin / "bare.git", origin / "plain", project / ".git"):
        with pytest.raises(OstlerError, match="git init"):
            await own(library, folder)
    git(project, "config", "core.worktree", str(origin.parent))
    with pytest.raises(OstlerError):
        await own(library, project)
