"""Base trees: what workspaces begin as, laid out once, shared, and removed when nobody has needed them for long."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Lock

import msgspec

from ostler.base.undo import undone_by
from ostler.runner.workspaces.orders import FetchedSubmodule
from ostler.runner.workspaces.providers.provider import TREE, Origin, Provider
from ostler.runner.workspaces.records import read_record, write_record
from ostler.runner.workspaces.repositories.mirrors import Fetched
from ostler.runner.workspaces.repositories.own_checkouts import Checkout
from ostler.wire.workspaces import LargeFile

_RECORD = "base.json"


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A base that is complete."""

    name: str
    tree: str
    """The git tree of its files."""
    objects: str
    """Where git finds the objects of that tree."""
    kind: str
    """The provider that can remove it."""
    commit: str | None = None
    url: str | None = None
    branch: str | None = None
    mirror: str | None = None
    submodules: tuple[FetchedSubmodule, ...] = ()
    """Those that are laid out, and those that could not be had."""
    too_large: tuple[LargeFile, ...] = ()
    """Files that are there but not in its git tree."""
    checkout: Checkout | None = None
    """The person's own checkout that is worked in."""

    @property
    def laid_out(self) -> tuple[FetchedSubmodule, ...]:
        """The submodules whose files are part of the tree."""
        return tuple(each for each in self.submodules if each.why_not is None)


class Bases:
    """All bases below one folder. What is written in base.json last of all counts; other folders are litter."""

    def __init__(self, root: Path, throw_away: Callable[[Path, str], None]) -> None:
        self._root = root
        self._throw_away = throw_away
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._lock = Lock()
        self._pins: Counter[str] = Counter()

    def take(self, key: str, provider: Provider, build: Callable[[Path], Base]) -> Base:
        """The base of that key, built if it is not there; it stays until its name is put back."""
        name = f"{key}-{provider.store}"
        with self._lock:
            self._pins[name] += 1
        with undone_by(lambda: self.put_back(name)), self._locks[name]:
            return self._existing(name) or self._built(name, provider, build)

    def put_back(self, name: str) -> None:
        """The base is in a record now, or not needed after all."""
        with self._lock:
            self._pins[name] -= 1

    def _existing(self, name: str) -> Base | None:
        base = read_record(self._root / name / _RECORD, Base)
        if base is not None:
            os.utime(self._root / name / _RECORD)
        return base

    def _built(self, name: str, provider: Provider, build: Callable[[Path], Base]) -> Base:
        place = self._root / name
        if place.exists():
            self._throw_away(place, provider.kind)
        place.mkdir()
        with undone_by(lambda: self._throw_away(place, provider.kind)):
            base = build(place)
        write_record(place / _RECORD, base)
        return base

    def get(self, name: str) -> Base:
        """A base that some record names."""
        base = read_record(self._root / name / _RECORD, Base)
        if base is None:
            raise FileNotFoundError(name)
        return base

    def origin(self, base: Base) -> Origin:
        """What a workspace of this base begins as."""
        tree = self._root / base.name / TREE
        fetched = None
        if base.mirror and base.commit and base.url:
            fetched = Fetched(
                mirror=Path(base.mirror),
                url=base.url,
                commit=base.commit,
                branch=base.branch,
                submodules=base.laid_out,
            )
        return Origin(content=tree if tree.exists() else None, fetched=fetched)

    def place(self, name: str) -> Path:
        """The folder of a base."""
        return self._root / name

    def prune(self, used: Collection[str], keep: int) -> None:
        """Remove bases that nobody uses, the longest unused first, until only `keep` of them are left."""
        with self._lock:
            idle = [
                record
                for record in self._root.glob(f"*/{_RECORD}")
                if record.parent.name not in used and self._pins[record.parent.name] <= 0
            ]
            idle.sort(key=lambda record: record.stat().st_mtime_ns)
            for record in idle[: max(0, len(idle) - keep)]:
                base = read_record(record, Base)
                self._throw_away(record.parent, base.kind if base else "copy")

    def sweep(self) -> None:
        """Remove what a killed runner left half built."""
        for place in self._root.iterdir():
            if not (place / _RECORD).exists():
                self._throw_away(place, _kind_of(place.name))


def _kind_of(name: str) -> str:
    return {"subvolume": "btrfs", "dataset": "zfs"}.get(name.rpartition("-")[2], "copy")


def base_key(*parts: str | None) -> str:
    """A name for what these parts say."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode(errors="surrogateescape")).hexdigest()[:32]
