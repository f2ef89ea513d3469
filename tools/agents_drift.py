"""What changed in the newest version of an agent: both versions go through the suite, and their frames are compared.

The pinned version is what tests/fixtures/conformance holds, or is recorded here first. Fields and kinds of frames that
are new or gone are told; a behaviour that the agent claims and no longer has, or a frame that its adapter cannot read,
is a failure.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.agents.sources import Npm
from ostler.base.errors import InstallFailed
from ostler.conformance.recorder import record
from ostler.conformance.stage import Programs
from ostler.conformance.suite import Suite
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.platforms import this_platform
from ostler.wire.agents import BehaviourResult
from tools.agent_schemas import frames, tag_of

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".cache" / "agents-drift"
FIXTURES = ROOT / "tests" / "fixtures" / "conformance"
_JOBS = 2
_MOST_TOLD = 12
_DEEPEST = 8
_WHOLE = "whole"
"""A file beside the recordings of a version that went through all of the suite."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """What one version of an agent did in the suite."""

    number: str
    failed: tuple[str, ...]
    """Behaviours that it claims and does not have, and frames that cannot be read, with the reason."""
    folder: Path
    """Its recordings."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What is different between two sets of recordings, by kind of frame."""

    new: dict[str, tuple[str, ...]]
    gone: dict[str, tuple[str, ...]]


# Frames


def fields_in(folder: Path, cases: Sequence[str]) -> dict[str, set[str]]:
    """By kind of frame every field and what it holds, such as `message.content[].text:string`, in these cases."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for frame in frames(path) if path.stem in cases else ():
            found.setdefault(tag_of(frame), set()).update(_fields(frame, "", 0))
    return found


def _fields(value: Any, place: str, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, each in value.items():
            yield from _fields(each, f"{place}.{name}" if place else name, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for each in value:
            yield from _fields(each, f"{place}[]", depth + 1)
    elif place:
        yield f"{place}:{type(value).__name__}"


def drift(old: Path, new: Path) -> Drift:
    """What the cases that both have differ in."""
    cases = sorted({path.stem for path in old.glob("*.jsonl")} & {path.stem for path in new.glob("*.jsonl")})
    before, after = fields_in(old, cases), fields_in(new, cases)
    return Drift(new=_only_in(after, before), gone=_only_in(before, after))


def _only_in(one: dict[str, set[str]], other: dict[str, set[str]]) -> dict[str, tuple[str, ...]]:
    """Kinds that the other lacks have no fields here: they are different as a whole."""
    return {
        kind: tuple(sorted(fields - other[kind])) if kind in other else ()
        for kind, fields in sorted(one.items())
        if kind not in other or fields - other[kind]
    }


def told(changed: dict[str, tuple[str, ...]], word: str) -> list[str]:
    """Lines for people."""
    lines = []
    for kind, fields in changed.items():
        shown = ", ".join(fields[:_MOST_TOLD]) + (
            f" and {len(fields) - _MOST_TOLD} more" if len(fields) > _MOST_TOLD else ""
        )
        lines.append(f"  {word:<4} {kind}" + (f": {shown}" if fields else " (all of it)"))
    return lines


# Versions


def newest(source: Npm) -> str:
    """The version that the registry calls the latest; raises SubprocessError if it does not tell."""
    platform = this_platform()
    package = next(iter(source.packages)).format(platform=source.platforms.get(platform, platform))
    ask = ("npm", "view", package, "dist-tags.latest")
    return subprocess.run(ask, capture_output=True, text=True, timeout=120, check=True).stdout.strip()


def examined(adapter: Adapter, source: Npm, version: str) -> Version:
    """Install a version beside all others and record what it does in the suite."""
    home = WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    search = os.environ.get("PATH", os.defpath).split(os.pathsep)
    environ = {**os.environ, "HOME": str(home)}
    installer = Installer(WORK / "agents" / version, environ=environ, search=search, platform=this_platform())
    installer.install(adapter.info.id, [source], version=version, progress=lambda line: print(f"  {line}", flush=True))
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    suite = Suite.of(adapter, Programs(search=search, environ=kept, installer=installer))
    folder = WORK / "recorded" / adapter.info.id / version
    failed = asyncio.run(_recorded(suite, folder))
    (folder / _WHOLE).touch()
    return Version(number=version, failed=failed, folder=folder)


async def _recorded(suite: Suite, folder: Path) -> tuple[str, ...]:
    failed = []
    async for result in record(suite, folder, jobs=_JOBS):
        failed += _faults(result)
        print(f"  {result.behaviour:<17} {result.verdict}", flush=True)
    return tuple(failed)


def _faults(result: BehaviourResult) -> list[str]:
    lost = [f"{result.behaviour}: {result.reason}"] if result.claimed and result.verdict == "fails" else []
    return [*lost, *(f"{result.behaviour}: cannot read a frame: {error}" for error in result.unparsed)]


def _pinned(adapter: Adapter, source: Npm, version: str) -> Path:
    """The recordings of the pinned version: those of the tests, of an earlier run, or made now."""
    agent = adapter.info.id
    known, earlier = FIXTURES / agent, WORK / "recorded" / agent / version
    if known.is_dir():
        return known
    return earlier if (earlier / _WHOLE).is_file() else examined(adapter, source, version).folder


def _compared(adapter: Adapter, source: Npm, wanted: str) -> int:
    """Tell about one agent; 1 if the version wanted, or the newest, does not do what the pinned one does."""
    agent, pinned = adapter.info.id, next(iter(source.packages.values()))
    try:
        latest = wanted or newest(source)
        if latest == pinned:
            print(f"{agent}: {pinned} is the newest", flush=True)
            return 0
        print(f"{agent}: {pinned} -> {latest}", flush=True)
        old = _pinned(adapter, source, pinned)
        new = examined(adapter, source, latest)
    except (OSError, subprocess.SubprocessError, InstallFailed) as error:
        print(f"{agent}: could not be compared: {error} `{agent}@VERSION` compares another one.", flush=True)
        return 1
    found = drift(old, new.folder)
    print("\n".join([*told(found.new, "new"), *told(found.gone, "gone"), *(f"  FAILS {each}" for each in new.failed)]))
    if not (found.new or found.gone or new.failed):
        print("  nothing that the suite sees")
    return 1 if new.failed else 0


def main(names: list[str]) -> int:
    """Compare the agents named, each with its newest version or as AGENT@VERSION, or all that npm has."""
    known = {
        adapter.info.id: (adapter, source)
        for adapter in ADAPTERS
        for source in adapter.sources
        if isinstance(source, Npm)
    }
    chosen = [(name, version) for name, _, version in (each.partition("@") for each in names or known)]
    if unknown := [name for name, _ in chosen if name not in known]:
        print(f"'{unknown[0]}' is no agent of the npm registry. Possible: {', '.join(known)}.", file=sys.stderr)
        return 2
    return max([_compared(*known[name], version) for name, version in chosen])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
