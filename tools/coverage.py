"""Runs every agent through the whole suite and writes what was found to the file that the matrix is printed from."""

import asyncio
import sys

import msgspec

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.agents.coverage import FILE, Examined
from ostler.conformance.matrix import coverage_from
from ostler.wire.agents import BehaviourResult
from tools.agent_cache import Search, cached_agents, pinned

_JOBS = 3


async def _examine(adapter: Adapter, search: Search) -> tuple[Examined, list[BehaviourResult]]:
    """One agent, with what it does not claim as well."""
    suite = search.suite(adapter, also_unclaimed=True)
    found = []
    async for result in suite.run(jobs=_JOBS):
        found.append(result)
        print(f"{adapter.info.id:<12} {result.verdict:<9} {result.behaviour:<17} {_told(result)}".rstrip(), flush=True)
    results = {result.behaviour: result.verdict for result in found if result.verdict != "unclaimed"}
    return Examined(version=pinned(adapter), results=results), found


def _told(result: BehaviourResult) -> str:
    seconds = f"{result.seconds:.1f} s" if result.seconds else ""
    return f"{seconds} {'' if result.claimed else '(not claimed) '}{result.reason or ''}"


def _written(found: dict[str, Examined]) -> None:
    """Keep the results of the other agents; what follows from results is worked out anew for all."""
    before = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Examined]) if FILE.is_file() else {}
    merged = before | found
    full = {
        adapter.info.id: msgspec.structs.replace(known, coverage=coverage_from(adapter, known.results))
        for adapter in ADAPTERS
        if (known := merged.get(adapter.info.id)) is not None
    }
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(full), indent=1) + b"\n")


def main(names: list[str]) -> int:
    """Examine the agents named, or all; 1 if one fails in what it claims."""
    chosen = [adapter for adapter in ADAPTERS if not names or adapter.info.id in names]
    search = cached_agents()
    search.install(chosen, lambda line: print(line, file=sys.stderr, flush=True))
    failures = []
    for adapter in chosen:
        examined, results = asyncio.run(_examine(adapter, search))
        failures += [
            f"{adapter.info.id} {each.behaviour}" for each in results if each.claimed and each.verdict == "fails"
        ]
        _written({adapter.info.id: examined})
    print(f"{len(chosen)} agents examined; {len(failures)} claims failed. {', '.join(failures)}".rstrip())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
