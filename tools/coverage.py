"""Runs every agent through the whole suite and writes what was found to the file that the matrix is printed from."""

import asyncio
import sys

import msgspec

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.agents.coverage import FILE, Examined, Verdict
from ostler.conformance.matrix import coverage_from
from ostler.wire.agents import BehaviourResult
from tools.agent_cache import Search, cached_agents, pinned

_JOBS = 3


async def _examine(adapter: Adapter, search: Search, only: list[str]) -> list[BehaviourResult]:
    """One agent, with what it does not claim as well; `only` these behaviours, or all."""
    suite = search.suite(adapter, also_unclaimed=True)
    found = []
    async for result in suite.run(only=only, jobs=_JOBS):
        found.append(result)
        print(f"{adapter.info.id:<12} {result.verdict:<9} {result.behaviour:<17} {_told(result)}".rstrip(), flush=True)
    return found


def _told(result: BehaviourResult) -> str:
    seconds = f"{result.seconds:.1f} s" if result.seconds else ""
    return f"{seconds} {'' if result.claimed else '(not claimed) '}{result.reason or ''}"


def _written(adapter: Adapter, found: list[BehaviourResult], *, keep: bool) -> None:
    """Put the results of an agent in place of its old ones; what follows from results is worked out anew for all."""
    known = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Examined]) if FILE.is_file() else {}
    old = known[adapter.info.id].results if keep and adapter.info.id in known else {}
    new: dict[str, Verdict] = {each.behaviour: each.verdict for each in found if each.verdict != "unclaimed"}
    known[adapter.info.id] = Examined(version=pinned(adapter), results=old | new)
    full = {
        each.info.id: msgspec.structs.replace(one, coverage=coverage_from(each, one.results))
        for each in ADAPTERS
        if (one := known.get(each.info.id)) is not None
    }
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(full), indent=1) + b"\n")


def main(names: list[str]) -> int:
    """Examine the agents named, or all; `codex/text` is one behaviour only. 1 if an agent fails in what it claims."""
    only = {agent: [name.partition("/")[2] for name in names if name.startswith(f"{agent}/")] for agent in _ids(names)}
    chosen = [adapter for adapter in ADAPTERS if not names or adapter.info.id in only]
    search = cached_agents()
    search.install(chosen, lambda line: print(line, file=sys.stderr, flush=True))
    failures = []
    for adapter in chosen:
        wanted = only.get(adapter.info.id, [])
        results = asyncio.run(_examine(adapter, search, wanted))
        failed = [each.behaviour for each in results if each.claimed and each.verdict == "fails"]
        failures += [f"{adapter.info.id}/{behaviour}" for behaviour in failed]
        _written(adapter, results, keep=bool(wanted))
    print(f"{len(chosen)} agents examined; {len(failures)} claims failed. {' '.join(failures)}".rstrip())
    return 1 if failures else 0


def _ids(names: list[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
