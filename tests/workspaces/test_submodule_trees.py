"""Submodules are fetched by the same rules as repositories; what is refused is named, and nothing else suffers."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ostler.base.errors import DeliveryFailed, RepositoryFailed
from ostler.runner.delivery.branches import CommitText
from ostler.runner.delivery.service import BranchOrder, deliver_branch
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import Credential, GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.runner.workspaces.repositories.submodules import absolute_url
from ostler.wire.workspaces import SnapshotProvider, Workspace
from tests.support.places import LOOPBACK, git, inside, make_repository, opened, order, summary
from tests.workspaces.conftest import Ground


def _plain(folder: Path, **files: str) -> Path:
    """A small repository."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def _project(root: Path) -> Path:
    """A project with a submodule that has one itself; their addresses are relative."""
    _plain(root / "deep", deep="deep\n")
    library = _plain(root / "library", used="used\n")
    git(library, "submodule", "add", "-q", "../deep", "inner/deep")
    git(library, "commit", "-qm", "deep")
    project = make_repository(root / "project")
    git(project, "submodule", "add", "-q", "../library", "libs/library")
    git(project, "commit", "-qm", "library")
    return project


def _named(root: Path, section: str, path: str = "lib") -> Path:
    """A project whose .gitmodules says just this about its one submodule."""
    library = _plain(root / "library", used="used\n")
    project = make_repository(root / "project")
    git(project, "submodule", "add", "-q", str(library), path)
    (project / ".gitmodules").write_text(section)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "odd")
    return project


def _missing(workspace: Workspace) -> dict[str, str]:
    return {each.path: each.why_not for each in workspace.submodules if each.why_not}


async def _patch(service: WorkspaceLibrary, workspace: str) -> bytes:
    target = io.BytesIO()
    await service.files.write_patch(workspace, target)
    return target.getvalue()


async def test_submodules_are_there_at_every_depth(ground: Ground, tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    async with opened(ground.root, tmp_path / "origin", zfs_command=ground.zfs_command) as service:
        made = await service.create(order(project, ground.kind))
        assert [(each.path, each.why_not) for each in made.submodules] == [
            ("libs/library", None),
            ("libs/library/inner/deep", None),
        ]
        read = "cat libs/library/used libs/library/inner/deep/deep; git status --porcelain"
        assert await inside(service, made, read) == "used\ndeep\n"
        assert await inside(service, made, "git -C libs/library log -1 --format=%s") == "deep\n"
        assert summary(await service.files.diff(made.id)) == {}
        await inside(service, made, "echo new > libs/library/new; rm libs/library/inner/deep/deep; echo x >> README.md")
        changed = {"README.md": "modified", "libs/library/inner/deep/deep": "deleted", "libs/library/new": "added"}
        assert summary(await service.files.diff(made.id)) == changed
        kept = await service.snapshot(made.id)
        await inside(service, made, "rm -rf libs")
        await service.restore(made.id, kept.id)
        fork = await service.fork(kept.id)
        for each in (made, fork):
            assert summary(await service.files.diff(each.id)) == changed
            assert await inside(service, each, "cat libs/library/new") == "new\n"


@pytest.mark.parametrize("kind", ["overlay", "git"])
async def test_a_patch_holds_what_changed_in_submodules(kind: SnapshotProvider, tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project, kind))
        await inside(service, made, "echo more >> libs/library/used; echo x >> README.md; echo n > libs/library/n")
        patch = await _patch(service, made.id)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--recurse-submodules", str(project), str(clone))
    git(clone, "apply", "-", given=patch)
    assert (clone / "libs/library/used").read_text() == "used\nmore\n"
    assert (clone / "libs/library/n").read_text() == "n\n"


async def test_a_branch_keeps_the_links_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    bare = tmp_path / "origin" / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(project), str(bare))
    async with opened(tmp_path / "state", tmp_path / "origin") as service:

        async def pushed(script: str, branch: str) -> tuple[tuple[str, ...], list[str]]:
            made = await service.create(order(bare, "overlay"))
            await inside(service, made, script)
            wanted = BranchOrder(workspace=made.id, branch=branch, text=CommitText(message="work"))
            done = await deliver_branch(service, wanted)
            return done.left_out, git(bare, "diff-tree", "-r", "--name-status", "main", branch).splitlines()

        assert await pushed("echo x >> README.md", "plain") == ((), ["M\tREADME.md"])
        touched = "echo x >> README.md; echo y > libs/library/inner/deep/y"
        assert await pushed(touched, "inner") == (("libs/library",), ["M\tREADME.md"])
        assert await pushed("rm -rf libs .gitmodules", "gone") == ((), ["D\t.gitmodules", "D\tlibs/library"])
        with pytest.raises(DeliveryFailed, match=r"only files of submodules were changed \(libs/library\).*patch"):
            await pushed("echo y > libs/library/y", "only")


async def test_submodules_can_be_left_out(tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        source = GitSource(url=str(project), branch="main", submodules=False)
        made = await service.create(Order(source=source))
        assert (made.submodules, await inside(service, made, "ls libs/library")) == ((), "")
        whole = await service.create(order(project))
        assert await inside(service, whole, "cat libs/library/used") == "used\n"


async def test_a_submodule_that_fails_is_named_and_comes_when_it_can_be_had(tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    hidden = tmp_path / "hidden"
    (tmp_path / "origin" / "deep").rename(hidden)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project))
        assert list(_missing(made)) == ["libs/library/inner/deep"]
        assert await inside(service, made, "cat libs/library/used; ls libs/library/inner/deep") == "used\n"
        hidden.rename(tmp_path / "origin" / "deep")
        again = await service.create(order(project))
        assert (_missing(again), await inside(service, again, "cat libs/library/inner/deep/deep")) == ({}, "deep\n")


async def test_only_what_the_policy_allows_is_fetched(tmp_path: Path) -> None:
    secret = _plain(tmp_path / "elsewhere" / "secret", used="secret\n")
    project = make_repository(tmp_path / "origin" / "project")
    git(project, "submodule", "add", "-q", str(secret), "lib")
    git(project, "submodule", "add", "-q", "../../elsewhere/secret", "up")
    git(project, "commit", "-qm", "outside")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project))
        assert set(_missing(made)) == {"lib", "up"}
        assert all("below one of the allowed local folders" in why for why in _missing(made).values())
        assert await inside(service, made, "ls lib up") == "lib:\n\nup:\n"


_ODD = {
    "a program as address": "path = lib\n url = ext::sh -c touch%20MARK",
    "an option as address": "path = lib\n url = -uMARK",
    "another option": "path = lib\n url = --upload-pack=touch MARK",
    "an option as host": "path = lib\n url = ssh://-oProxyCommand=touch%20MARK/x",
    "a file outside": "path = lib\n url = file:///etc",
    "no address": "path = lib",
    "a path upwards": "path = ../up\n url = ../library",
    "an absolute path": "path = MARK\n url = ../library",
    "a path in git's own folder": "path = .GIT/hooks\n url = ../library",
    "an option as path": "path = --lib\n url = ../library",
    "an address above everything": f"path = lib\n url = {'../' * 40}x",
    "not wanted": "path = lib\n url = ../library\n update = none",
}


@pytest.mark.parametrize("name", _ODD)
async def test_what_gitmodules_says_cannot_do_harm(name: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    project = _named(tmp_path / "origin", f'[submodule "lib"]\n {_ODD[name]}\n'.replace("MARK", str(mark)))
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project, "copy"))
        assert len(_missing(made)) == 1
        assert await inside(service, made, "ls lib; cat README.md") == "Hello\n\nThis is a project.\n"
    assert not mark.exists()


async def test_commands_and_names_in_gitmodules_mean_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    section = f'[submodule "../../evil"]\n path = lib\n url = ../library\n update = "!touch {mark}"\n'
    project = _named(tmp_path / "origin", f"[include]\n path = /etc/passwd\n{section}")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project, "copy"))
        assert (_missing(made), await inside(service, made, "cat lib/used")) == ({}, "used\n")
    assert not mark.exists()


@contextmanager
def _web(folder: Path) -> Iterator[tuple[str, list[str | None]]]:
    """A folder on the web, and the credentials that its visitors showed."""
    shown: list[str | None] = []

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers["authorization"])
            super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", shown
        finally:
            server.shutdown()
            thread.join()


async def test_a_credential_is_shown_to_its_own_host_only(tmp_path: Path) -> None:
    root = tmp_path / "origin"
    library = _plain(root / "library", used="used\n")
    with _web(root) as (own, shown), _web(root) as (other, shown_to_others):
        project = make_repository(root / "project")
        for path, url in (("own", "../../library/.git"), ("other", f"{other}/library/.git")):
            git(project, "-c", "protocol.allow=always", "submodule", "add", "-q", str(library), path)
            git(project, "config", "-f", ".gitmodules", f"submodule.{path}.url", url)
        git(project, "commit", "-qam", "two")
        for each in (library, project):
            git(each, "update-server-info")
        policy = Policy(protocols=("http",), addresses=LOOPBACK)
        source = GitSource(url=f"{own}/project/.git", branch="main", credential=Credential(token="secret"))
        async with opened(tmp_path / "state", policy=policy) as service:
            made = await service.create(Order(source=source))
            assert (_missing(made), await inside(service, made, "cat own/used other/used")) == ({}, "used\nused\n")
    assert set(shown_to_others) == {None}
    assert len(set(shown)) == 1
    assert None not in shown


@pytest.mark.parametrize("content", ["[submodule", "\0\0", ""])
async def test_a_file_that_cannot_be_read_is_named(content: str, tmp_path: Path) -> None:
    project = _named(tmp_path / "origin", content)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project))
        assert await inside(service, made, "ls lib; cat README.md") == "Hello\n\nThis is a project.\n"
        assert set(_missing(made)) <= {".gitmodules"}


async def test_a_link_to_gitmodules_is_not_followed(tmp_path: Path) -> None:
    project = _named(tmp_path / "origin", "")
    (project / ".gitmodules").unlink()
    (project / "real").write_text('[submodule "lib"]\n path = lib\n url = ../library\n')
    (project / ".gitmodules").symlink_to("real")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "link")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        with pytest.raises(RepositoryFailed, match="invalid path"):
            await service.create(order(project))


async def test_a_submodule_behind_a_link_is_not_laid_out(tmp_path: Path) -> None:
    """Only a forged tree can have a link and a folder of one name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    project = _named(tmp_path / "origin", '[submodule "lib"]\n path = a/lib\n url = ../library\n', "a/lib")
    link = git(project, "hash-object", "-w", "--stdin", given=str(outside).encode())
    names = git(project, "ls-tree", "HEAD").splitlines()
    tree = git(project, "mktree", given="\n".join([*names, f"120000 blob {link}\ta", ""]).encode())
    commit = git(project, "commit-tree", "-m", "forged", tree)
    git(project, "update-ref", "refs/heads/main", commit)
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        with suppress(RepositoryFailed):
            await service.create(order(project, "copy"))
        assert list(outside.iterdir()) == []


async def test_a_repository_inside_itself_comes_to_an_end(tmp_path: Path) -> None:
    project = _plain(tmp_path / "origin" / "project", a="a\n")
    (project / ".gitmodules").write_text('[submodule "self"]\n path = self\n url = ../project\n')
    git(project, "add", ".gitmodules")
    for _ in range(12):
        git(project, "update-index", "--add", "--cacheinfo", f"160000,{git(project, 'rev-parse', 'HEAD')},self")
        git(project, "commit", "-qm", "deeper")
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        made = await service.create(order(project, "copy"))
        depths = [each.path.count("/") for each in made.submodules]
        assert depths == list(range(len(depths)))
        assert list(_missing(made).values()) == ["only 8 levels of submodules are fetched"]


@pytest.mark.parametrize(
    ("url", "parent", "found"),
    [
        ("../lib.git", "https://host/a/b.git", "https://host/a/lib.git"),
        ("./lib.git", "https://host/a/b.git", "https://host/a/b.git/lib.git"),
        ("../../c/lib", "ssh://git@host:22/a/b", "ssh://git@host:22/c/lib"),
        ("../lib.git", "git@host:a/b.git", "git@host:a/lib.git"),
        ("../lib.git", "git@host:b.git", "git@host:lib.git"),
        ("../lib", "file:///srv/a/b", "file:///srv/a/lib"),
        ("https://other/x", "https://host/a", "https://other/x"),
    ],
)
def test_a_relative_address_is_beside_its_parent(url: str, parent: str, found: str) -> None:
    assert absolute_url(url, parent) == found


def test_an_address_above_the_host_is_none() -> None:
    with pytest.raises(RepositoryFailed, match="above the host"):
        absolute_url("../../other", "https://host/a")


async def test_progress_names_the_submodule(tmp_path: Path) -> None:
    project = _project(tmp_path / "origin")
    told: list[str] = []
    async with opened(tmp_path / "state", tmp_path / "origin") as service:
        source = GitSource(url=str(project), branch="main", credential=Credential(token="token-of-the-project"))
        await service.create(Order(source=source), progress=told.append)
    assert any(line.startswith("Submodule libs/library: ") for line in told)
