"""Differences: right in what they say, and bounded in how much they say."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ostler.base.errors import SnapshotNotFound
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import DiffLimits
from ostler.wire.workspaces import FileChange
from tests.support.places import git, inside, make_repository, opened, order, summary


@pytest.fixture
async def service(repository: Path, tmp_path: Path) -> AsyncIterator[WorkspaceLibrary]:
    async with opened(tmp_path / "state", repository.parent) as opened_service:
        yield opened_service


async def _one(service: WorkspaceLibrary, workspace: str, limits: DiffLimits | None = None) -> FileChange:
    (file,) = (await service.files.diff(workspace, limits=limits)).files
    return file


async def test_a_diff_is_the_one_that_git_shows(service: WorkspaceLibrary, repository: Path) -> None:
    workspace = await service.create(order(repository))
    await inside(service, workspace, "sed -i 's/two/three/' src/main.py")
    shown = await inside(service, workspace, "git diff --full-index")
    assert (await _one(service, workspace.id)).diff == shown
    assert "+print('three')" in shown


async def test_a_long_diff_keeps_its_beginning_and_its_end(service: WorkspaceLibrary, repository: Path) -> None:
    workspace = await service.create(order(repository))
    await inside(service, workspace, "seq 100000 > long.txt")
    found = await service.files.diff(workspace.id)
    file = found.files[0]
    assert (file.added, file.truncated, found.truncated, found.added) == (100000, True, True, 100000)
    lines = file.diff.splitlines()
    assert (len(lines), lines[6], lines[200], lines[-1]) == (251, "+1", "[...]", "+100000")


async def test_one_endless_line_does_not_fill_the_answer(service: WorkspaceLibrary, repository: Path) -> None:
    workspace = await service.create(order(repository))
    await inside(service, workspace, "head -c 3000000 /dev/zero | tr '\\0' x > line.txt; echo y >> README.md")
    found = {file.path: file for file in (await service.files.diff(workspace.id)).files}
    assert found["line.txt"].truncated
    assert len(found["line.txt"].diff) < 200_000
    assert found["README.md"].diff.endswith("+y\n")


async def test_many_files_are_counted_but_not_all_told(service: WorkspaceLibrary, repository: Path) -> None:
    workspace = await service.create(order(repository))
    await inside(service, workspace, "mkdir many; for n in $(seq 300); do echo $n > many/$n; done")
    found = await service.files.diff(workspace.id, limits=DiffLimits(files=10))
    assert (len(found.files), found.files_changed, found.added, found.truncated) == (10, 300, 300, True)
    small = await service.files.diff(workspace.id, limits=DiffLimits(total_bytes=1000))
    assert sum(len(file.diff) for file in small.files) <= 1000
    assert small.truncated
    names = await service.files.diff(workspace.id, text=False)
    assert ({file.diff for file in names.files}, names.truncated) == ({""}, False)


async def test_names_that_are_no_text_or_look_like_something_else_are_told(
    service: WorkspaceLibrary, repository: Path
) -> None:
    workspace = await service.create(order(repository))
    odd = ("$(printf 'b\\377ad')", "$(printf 'new\\nline')", ":(glob)**", "-rf", "*")
    await inside(service, workspace, "; ".join(f'printf x > "{name}"' for name in odd))
    assert summary(await service.files.diff(workspace.id)) == {
        "*": "added",
        "-rf": "added",
        ":(glob)**": "added",
        "b\\xffad": "added",
        "new\nline": "added",
    }
    await service.restore(workspace.id, (await service.snapshot(workspace.id)).id)
    await inside(service, workspace, "rm -- -rf '*' ':(glob)**'")
    assert set(summary(await service.files.diff(workspace.id))) == {"b\\xffad", "new\nline"}


async def test_ignore_rules_count_as_they_do_in_git(service: WorkspaceLibrary, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "origin" / "project")
    (project / "kept.log").write_text("tracked although ignored\n")
    (project / "src" / ".gitignore").write_text("!important.log\nlocal/\n")
    git(project, "add", "-f", "kept.log", "src/.gitignore")
    git(project, "commit", "-qm", "rules")
    script = (
        "echo x >> kept.log; echo x > other.log; echo x > src/important.log; mkdir -p src/local a/build;"
        "echo x > src/local/x; echo x > a/build/x; echo x > a/y; printf '*.tmp\\n' > a/.gitignore; echo x > a/z.tmp"
    )
    async with opened(tmp_path / "state2", tmp_path / "origin") as own:
        workspace = await own.create(order(project))
        await inside(own, workspace, script)
        plain = await inside(own, workspace, "git add -A && git diff --cached --name-only")
        assert sorted(summary(await own.files.diff(workspace.id))) == plain.split()
        await inside(own, workspace, "rm .gitignore")
        plain = await inside(own, workspace, "git add -A && git diff --cached --name-only")
        assert sorted(summary(await own.files.diff(workspace.id))) == plain.split()


async def test_a_state_that_does_not_exist_is_not_found(service: WorkspaceLibrary, repository: Path) -> None:
    one, two = await service.create(order(repository)), await service.create(order(repository))
    foreign = await service.snapshot(two.id)
    for name in ("snp_nope", "HEAD", "--all", foreign.id):
        with pytest.raises(SnapshotNotFound):
            await service.files.diff(one.id, old=name)
