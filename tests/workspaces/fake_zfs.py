"""A stand-in for the `zfs` command that keeps datasets as folders: the contract Ostler relies on, strictly checked.

`python fake_zfs.py STATE_FILE POOL POOL_MOUNT ARGUMENT ...`. It refuses what the real one refuses: unknown names,
destroying a dataset whose snapshots have clones, promoting what is no clone, writing outside of the pool.
"""

import fcntl
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)*")


def fail(text: str) -> NoReturn:
    print(f"cannot do that: {text}", file=sys.stderr)
    sys.exit(1)


class Pool:
    def __init__(self, file: Path, name: str, mount: str) -> None:
        self.file = file
        self.datasets: dict[str, dict[str, Any]] = {name: {"mountpoint": mount, "origin": "-", "snapshots": []}}
        if file.exists():
            self.datasets = json.loads(file.read_text())

    def save(self) -> None:
        self.file.write_text(json.dumps(self.datasets))

    def dataset(self, name: str) -> dict[str, Any]:
        return self.datasets.get(name) or fail(f"'{name}': dataset does not exist")

    def folder_of(self, snapshot: str) -> Path:
        return self.file.parent / "snapshots" / snapshot.replace("/", "%")

    def new(self, name: str, options: dict[str, str], origin: str) -> None:
        if name in self.datasets or not _NAME.fullmatch(name) or name.rpartition("/")[0] not in self.datasets:
            fail(f"'{name}' cannot be created")
        self.datasets[name] = {"mountpoint": options["mountpoint"], "origin": origin, "snapshots": []}
        if origin == "-":
            Path(options["mountpoint"]).mkdir()
        else:
            shutil.copytree(self.folder_of(origin), options["mountpoint"], symlinks=True)

    def snapshot(self, name: str) -> None:
        dataset, _, mark = name.partition("@")
        found = self.dataset(dataset)
        if mark in found["snapshots"] or not _NAME.fullmatch(mark):
            fail(f"'{name}' cannot be created")
        shutil.copytree(found["mountpoint"], self.folder_of(name), symlinks=True)
        found["snapshots"].append(mark)

    def clones(self, dataset: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {f"{dataset}@{mark}": [] for mark in self.dataset(dataset)["snapshots"]}
        for name, other in self.datasets.items():
            if other["origin"] in found:
                found[other["origin"]].append(name)
        return found

    def promote(self, name: str) -> None:
        origin = self.dataset(name)["origin"]
        if origin == "-":
            fail(f"'{name}': not a cloned filesystem")
        parent, _, mark = origin.partition("@")
        self.dataset(parent)["snapshots"].remove(mark)
        self.dataset(name)["snapshots"].append(mark)
        self.folder_of(origin).rename(self.folder_of(f"{name}@{mark}"))
        for other in self.datasets.values():
            if other["origin"] == origin:
                other["origin"] = f"{name}@{mark}"
        self.datasets[name]["origin"] = self.dataset(parent)["origin"]
        self.datasets[parent]["origin"] = f"{name}@{mark}"

    def destroy(self, name: str) -> None:
        if any(self.clones(name).values()):
            fail(f"'{name}': filesystem has dependent clones")
        gone = self.datasets.pop(name)
        for mark in gone["snapshots"]:
            shutil.rmtree(self.folder_of(f"{name}@{mark}"))
        shutil.rmtree(gone["mountpoint"], ignore_errors=True)

    def mount_elsewhere(self, name: str, folder: str) -> None:
        Path(self.dataset(name)["mountpoint"]).rename(folder)
        self.datasets[name]["mountpoint"] = folder


def main(pool: Pool, argv: list[str]) -> None:
    match argv:
        case ["list", "-H", "-o", "name,mountpoint", "-t", "filesystem"]:
            for name, dataset in pool.datasets.items():
                print(f"{name}\t{dataset['mountpoint']}")
        case ["list", "-H", "-o", "clones", "-t", "snapshot", "-r", name]:
            for clones in pool.clones(name).values():
                print(",".join(clones) or "-")
        case ["create", "-o", mountpoint, name]:
            pool.new(name, dict([mountpoint.split("=", 1)]), "-")
        case ["snapshot", name]:
            pool.snapshot(name)
        case ["clone", "-o", mountpoint, "-o", ("readonly=on" | "readonly=off"), origin, name]:
            pool.new(name, dict([mountpoint.split("=", 1)]), origin)
        case ["promote", name]:
            pool.promote(name)
        case ["destroy", "-r", name]:
            pool.destroy(name)
        case ["set", mountpoint, name]:
            pool.mount_elsewhere(name, mountpoint.removeprefix("mountpoint="))
        case _:
            fail(f"unknown use: {argv}")
    pool.save()


if __name__ == "__main__":
    lock = Path(f"{sys.argv[1]}.lock").open("w")  # noqa: SIM115 - held until we end
    fcntl.flock(lock, fcntl.LOCK_EX)  # the real command does one thing after another, too
    main(Pool(Path(sys.argv[1]), sys.argv[2], sys.argv[3]), sys.argv[4:])
