"""The page of results: one section per part of the benchmark, each with the machine and the day it was measured on."""

import os
import platform
import re
import time
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
_HEAD = """# Benchmark results

Written by `make bench`; method and definitions: docs/explanation/benchmarks.md. Compare ratios, not figures of
different machines or days.
"""
_SECTION = re.compile(r"^## (?P<title>.+)\n", re.MULTILINE)
_BUSY = 0.1


def store(title: str, text: str) -> None:
    """Put a section in the place of the one with the same title, or at the end."""
    sections = _sections() | {title: text.strip()}
    RESULTS.write_text(_HEAD + "".join(f"\n## {title}\n\n{text}\n" for title, text in sections.items()))


def _sections() -> dict[str, str]:
    if not RESULTS.exists():
        return {}
    _, *parts = _SECTION.split(RESULTS.read_text())
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def circumstances(busy: float) -> str:
    """When and where it was measured, and whether others were at work."""
    warning = " **The machine was busy: measure again before you trust these figures.**" if busy > _BUSY else ""
    return (
        f"{time.strftime('%Y-%m-%d')} on {_machine()}. Python {platform.python_version()}.\n"
        f"Other work took {busy:.0%} of the processors beside the run.{warning}"
    )


def busy() -> float:
    """Which part of the processors others use while we do nothing."""
    before = _ticks()
    time.sleep(1.0)
    total, idle = (after - then for after, then in zip(_ticks(), before, strict=True))
    return 1 - idle / total if total else 0.0


def _machine() -> str:
    cpu = next((line.partition(":")[2] for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    model = cpu.strip() or platform.machine()
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return f"{os.cpu_count()} cores of {model}, {memory / 2**20:.0f} GiB memory, {kernel}"


def _ticks() -> tuple[int, int]:
    fields = [int(field) for field in _lines("/proc/stat")[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
