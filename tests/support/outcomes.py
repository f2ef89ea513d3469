"""Writes down which tests of a run failed, as they fail; a worker that crashes is told of like any other failure."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest


class Failure(NamedTuple):
    """A test that failed, and why, in one line."""

    test: str
    reason: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where failures are written down."""
    parser.addoption("--failures-to", type=Path, metavar="FILE", help="write down each failure as it happens")


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that has the workers hears of a worker that crashes."""
    if (file := config.getoption("failures_to")) is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(file))


def read_failures(file: Path) -> list[Failure]:
    """The failures of a run, each test once."""
    lines = file.read_text().splitlines() if file.exists() else []
    found: dict[str, Failure] = {}
    for line in lines:
        failure = Failure(*json.loads(line))
        found.setdefault(failure.test, failure)
    return list(found.values())


class Outcomes:
    """Listens in the process that tells the workers what to do."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test failed, or what it needs, or its clean-up."""
        if report.failed:
            self._write(report.nodeid, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file could not be read."""
        if report.failed:
            self._write(report.nodeid, report)

    def _write(self, name: str, report: pytest.TestReport | pytest.CollectReport) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = str(crash.message if crash else report.longrepr).strip().splitlines()
        with self._file.open("a") as file:
            file.write(json.dumps([name, lines[0][:300] if lines else "no reason given"]) + "\n")
