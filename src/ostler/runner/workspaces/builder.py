"""Lays out the base that a source describes: a commit, an archive, a folder, or a few files."""

from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import msgspec

from ostler.base.beneath import folder
from ostler.base.errors import RepositoryRefused
from ostler.base.ids import new_id
from ostler.runner.file_trees.stopping import Stop
from ostler.runner.file_trees.trees import copy_tree
from ostler.runner.file_trees.unpacking import UnpackLimits, unpack
from ostler.runner.workspaces.bases import Base, Bases, base_key
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.git import Git, Progress
from ostler.runner.workspaces.orders import EmptySource, FetchedSubmodule, FolderSource, GitSource, Order, UploadSource
from ostler.runner.workspaces.providers.provider import TREE, Provider
from ostler.runner.workspaces.recorder import EMPTY_TREE, Contents, Recorder, changed_since
from ostler.runner.workspaces.repositories.mirrors import Fetched, Mirrors, check_out, check_size
from ostler.runner.workspaces.repositories.own_checkouts import find_checkout
from ostler.runner.workspaces.repositories.policy import Policy, allowed_folder
from ostler.runner.workspaces.repositories.submodules import Submodules, grafted
from ostler.runner.workspaces.uploads import Uploads

_RECORD = "record.git"


class Builder:
    """Makes bases. All methods block."""

    def __init__(
        self,
        git: Git,
        mirrors: Mirrors,
        recorder: Recorder,
        bases: Bases,
        uploads: Uploads,
        *,
        policy: Policy,
        limits: UnpackLimits,
    ) -> None:
        self._git = git
        self._mirrors = mirrors
        self._submodules = Submodules(git, mirrors)
        self._recorder = recorder
        self._bases = bases
        self._uploads = uploads
        self._policy = policy
        self._limits = limits

    def take(self, order: Order, provider: Provider, progress: Progress | None, stop: Stop) -> Base:
        """The base of an order, which stays until its name is put back."""
        source = order.source
        match source:
            case GitSource():
                return self._from_repository(source, order.scope, provider, progress, stop)
            case UploadSource():
                upload, archive = self._uploads.find(source.upload)
                key = base_key("upload", order.scope, upload)
                return self._filled(key, provider, lambda tree: unpack(archive, tree, self._limits))
            case FolderSource():
                return self._from_folder(source, provider)
            case EmptySource():
                key = base_key("none", msgspec.json.encode(source).decode())
                return self._filled(key, provider, lambda tree: _write(tree, source.files))
            case _:
                assert_never(source)

    def _from_repository(
        self, source: GitSource, scope: str, provider: Provider, progress: Progress | None, stop: Stop
    ) -> Base:
        """What could be had of submodules decides which base it is; why others are missing is found out each time."""
        fetched = self._mirrors.fetch(source, scope, progress, stop)
        submodules = self._submodules.fetch(fetched, source, scope, progress, stop)
        there = tuple(each for each in submodules if each.why_not is None)
        fetched = msgspec.structs.replace(fetched, submodules=there)
        inner = (f"{each.path}\0{each.url}\0{each.commit}" for each in there)
        key = base_key("git", scope, fetched.url, fetched.commit, fetched.branch, *inner)
        base = self._bases.take(key, provider, lambda place: self._from_git(place, provider, fetched, submodules))
        return msgspec.structs.replace(base, submodules=submodules)

    def _from_git(
        self, place: Path, provider: Provider, fetched: Fetched, submodules: tuple[FetchedSubmodule, ...]
    ) -> Base:
        check_size(self._git, fetched, self._limits.total_bytes)
        if provider.store != "none":
            provider.new_base(place / TREE)
            check_out(self._git, fetched, place / TREE, objects="linked" if provider.store == "folder" else "copied")
        tree, objects = self._tree_of(place, fetched)
        return Base(
            name=place.name,
            tree=tree,
            objects=str(objects),
            kind=provider.kind,
            commit=fetched.commit,
            url=fetched.url,
            branch=fetched.branch,
            mirror=str(fetched.mirror),
            submodules=submodules,
        )

    def _tree_of(self, place: Path, fetched: Fetched) -> tuple[str, Path]:
        """The git tree of a commit with the files of its submodules, and where its objects are."""
        if not fetched.submodules:
            tree = self._git.run("rev-parse", "--verify", f"{fetched.commit}^{{tree}}", repository=fetched.mirror)
            return tree.decode().strip(), fetched.mirror / "objects"
        repository = place / _RECORD
        mirrors = {fetched.mirror, *(Path(each.mirror or "") for each in fetched.submodules)}
        self._recorder.make_repository(repository, [mirror / "objects" for mirror in sorted(mirrors)])
        return grafted(self._git, repository, fetched.commit, fetched.submodules), repository / "objects"

    def _from_folder(self, source: FolderSource, provider: Provider) -> Base:
        """A folder may be another one tomorrow, so its base is never shared."""
        path = allowed_folder(source.path, self._policy)
        if source.in_place:
            return self._bases.take(new_id("dir"), provider, lambda place: self._own(place, provider, path))
        if (path / ".git").is_file():
            raise RepositoryRefused(
                url=source.path, reason="it belongs to a git repository elsewhere. Give that repository's address."
            )
        return self._filled(new_id("dir"), provider, lambda tree: _copy(path, tree))

    def _own(self, place: Path, provider: Provider, path: Path) -> Base:
        """A person's checkout: its files are compared with its head, wherever in it the agent works."""
        found = find_checkout(self._git, path)
        allowed_folder(found.top, self._policy)
        return Base(
            name=place.name,
            tree=found.tree,
            objects=str(Path(found.common) / "objects"),
            kind=provider.kind,
            commit=found.commit,
            url=found.url,
            branch=found.branch,
            checkout=found,
        )

    def _filled(self, key: str, provider: Provider, fill: Callable[[Path], None]) -> Base:
        def build(place: Path) -> Base:
            tree = place / TREE
            provider.new_base(tree)
            fill(tree)
            return self._recorded(place, provider, tree)

        return self._bases.take(key, provider, build)

    def _recorded(self, place: Path, provider: Provider, tree: Path) -> Base:
        repository = place / _RECORD
        self._recorder.make_repository(repository, ())
        with folder(tree) as root:
            found = changed_since(root, Contents(), 0)
            recorded = self._recorder.record(repository, EMPTY_TREE, root, found, frozen=True)
        return Base(
            name=place.name,
            tree=recorded.tree,
            objects=str(repository / "objects"),
            kind=provider.kind,
            too_large=recorded.too_large,
        )


def _copy(source: Path, tree: Path) -> None:
    with folder(source) as root:
        copy_tree(root, tree)


def _write(tree: Path, files: dict[str, str]) -> None:
    with folder(tree) as root:
        files_of = Files(root)
        for path, text in files.items():
            files_of.write(path, text.encode(errors="surrogateescape"))
