"""Start the benchmark: `python bench/run.py [PART ...] [--quick] [--only NAME ...] [--no-peer]`; see `--help`."""

import argparse
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is a package, wherever this is started

from bench import agents, cluster, credentials, own_agent, proxy, report, suite, web, workspaces  # noqa: E402 - needs the line above
from bench.measures import MEASURES  # noqa: E402 - needs the line above
from bench.scale import FULL, QUICK, Scale  # noqa: E402 - needs the line above

Part = tuple[str, Callable[[Scale], str]]
PARTS: dict[str, Part] = {
    "peer": ("Beside the peer", suite.section),
    "agents": ("Agents, cold and warm", agents.section),
    "own": ("Ostler's own agent", own_agent.section),
    "workspaces": ("Workspaces", workspaces.section),
    "web": ("The web UI", web.section),
    "cluster": ("A cluster", cluster.section),
    "proxy": ("The SOCKS proxy", proxy.section),
    "credentials": ("Credentials", credentials.section),
}


def main(arguments: Sequence[str]) -> int:
    """Run the parts that were named, or all; each is written down when it is complete."""
    options = _parsed(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    scale = QUICK if options.quick else FULL
    scale = replace(scale, soak_seconds=options.soak_seconds or scale.soak_seconds)
    if options.only or options.no_peer:
        print(suite.printed(options.only or list(MEASURES), scale, peer=not options.no_peer))
        return 0
    for title, section in (PARTS[name] for name in options.parts or PARTS):
        busy = report.busy()
        text = section(scale)
        whole = f"{report.circumstances(max(busy, report.busy()))}\n\n{text}"
        print(f"\n## {title}\n\n{whole}\n", flush=True)
        report.store(title, whole)
    print(f"Written to {report.RESULTS.parent.name}/{report.RESULTS.name}.")
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Measure Ostler, beside its peer and alone.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="one round with smaller numbers")
    only = f"some measures of the part peer, printed only: {', '.join(MEASURES)}"
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(MEASURES), help=only)
    parser.add_argument("--no-peer", action="store_true", help="the part peer without the peer, printed only")
    soak = "how long the soak lasts, for example 3600 for an hour"
    parser.add_argument("--soak-seconds", type=int, metavar="SECONDS", help=soak)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; choose from {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("Stopped; every server that was started has been ended.")
