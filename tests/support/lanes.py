"""Which lane a test belongs to: one word per folder or file, and which lanes a run has.

`make test` runs `fast`; whoever names files or tests gets those, whatever their lane.
"""

from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.patience import stretched

ROOT = Path(__file__).resolve().parents[2]

LANES: dict[str, str] = {
    "fast": "what is fast, and a thin thread through everything that is not",
    "server": "servers of their own: restarts, power cuts, clocks, full disks, slow readers, made-up requests",
    "work": "tasks, workspaces and delivery with real repositories, file systems and containers",
    "runner": "processes, installations and logins of agents on their machine",
    "agents": "every real agent through the suite of behaviours",
    "cluster": "several servers, runners that dial in, pools, PostgreSQL, Temporal, TLS",
    "cli": "the command line in terminals, and clients of others in all their versions",
    "web": "the web UI in a real browser",
    "chaos": "kills at random, with a checker of every promise",
    "open": "what fails for a reason that is not understood yet; OPEN says what is known",
}
"""Every lane, and what is in it."""

PLACES: dict[str, str] = {
    "tests": "fast",
    "tests/agents/test_amp_login.py": "runner",
    "tests/chaos": "chaos",
    "tests/cli/test_doctor.py": "cli",
    "tests/cli/test_fleet_hub.py": "cli",
    "tests/cli/test_fleet_tools.py": "cli",
    "tests/cli/test_install_command.py": "cli",
    "tests/cli/test_leaving.py": "cli",
    "tests/cli/test_terminal.py": "cli",
    "tests/client/test_server_restart.py": "server",
    "tests/client/test_typescript_runtimes.py": "cli",
    "tests/clients": "cli",
    "tests/clients/test_ai_sdk_clients.py": "fast",
    "tests/clients/test_sandbox_agent.py": "fast",
    "tests/cluster": "cluster",
    "tests/cluster/test_two_servers.py": "fast",
    "tests/conformance": "agents",
    "tests/conformance/test_daemon_tells_all.py": "fast",
    "tests/conformance/test_manifest.py": "fast",
    "tests/conformance/test_matrix.py": "fast",
    "tests/conformance/test_real.py": "fast",
    "tests/conformance/test_recorded.py": "fast",
    "tests/conformance/test_there_and_back.py": "fast",
    "tests/conformance/test_wire_forms.py": "fast",
    "tests/docs/test_cloudflare_example.py": "cli",
    "tests/docs/test_sandbox_examples.py": "cli",
    "tests/docs/test_typescript_examples.py": "cli",
    "tests/engine": "cluster",
    "tests/link/test_cut.py": "cluster",
    "tests/logins": "runner",
    "tests/objects": "cluster",
    "tests/pools": "cluster",
    "tests/runner/test_connection.py": "runner",
    "tests/runner/test_install.py": "runner",
    "tests/runner/test_install_local.py": "runner",
    "tests/runner/test_install_releases.py": "runner",
    "tests/runner/test_process.py": "runner",
    "tests/runners": "cluster",
    "tests/runners/test_joining.py": "fast",
    "tests/server/api/test_connections.py": "server",
    "tests/server/api/test_fuzz.py": "server",
    "tests/server/api/test_slow_readers.py": "server",
    "tests/server/api/test_strictness.py": "server",
    "tests/server/dialects/test_dialect_fuzz.py": "server",
    "tests/server/dialects/test_own_turns.py": "server",
    "tests/server/fleets/test_bounds.py": "server",
    "tests/server/runners/test_link_loss.py": "cluster",
    "tests/server/sessions/test_clearing.py": "server",
    "tests/server/sessions/test_import_stores.py": "server",
    "tests/server/sessions/test_instructions.py": "server",
    "tests/server/sessions/test_keeping.py": "server",
    "tests/server/sessions/test_large_frames.py": "server",
    "tests/server/sessions/test_leases.py": "server",
    "tests/server/sessions/test_limits.py": "server",
    "tests/server/sessions/test_log_limit.py": "server",
    "tests/server/sessions/test_memory.py": "server",
    "tests/server/sessions/test_session_folders.py": "server",
    "tests/server/sessions/test_shared_process.py": "server",
    "tests/server/sessions/test_traces.py": "server",
    "tests/server/sessions/test_warm_start.py": "server",
    "tests/server/store/test_damaged_files.py": "server",
    "tests/server/store/test_disk_full.py": "server",
    "tests/server/store/test_postgres.py": "cluster",
    "tests/server/store/test_power_cuts.py": "server",
    "tests/server/store/test_upgrade.py": "server",
    "tests/server/test_clock.py": "server",
    "tests/server/test_modes.py": "server",
    "tests/store/test_postgres_store.py": "cluster",
    "tests/store/test_postgres_versions.py": "cluster",
    "tests/tasks": "work",
    "tests/tasks/test_orders.py": "fast",
    "tests/tasks/test_own_folder.py": "fast",
    "tests/tasks/test_real_engine.py": "fast",
    "tests/tasks/test_tasks.py": "fast",
    "tests/tls": "cluster",
    "tests/workspaces": "work",
    "tests/workspaces/test_diffs.py": "fast",
    "tests/workspaces/test_git_safety.py": "fast",
    "tests/workspaces/test_workspace_files.py": "fast",
}
"""The lane of a folder or a file; the longest name wins. A test in a file of another lane has the marker `lane`."""

OPEN: dict[str, str] = {}
"""Tests that wait to be understood, each with what is known; every run names them in its end."""

FAST_SECONDS = 120
"""The bound of a fast test that has none of its own, on a quiet machine."""

_FILES_TOLD = 25


class Spent(NamedTuple):
    """What a lane took, added up over all workers."""

    tests: int = 0
    seconds: float = 0.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which lanes run."""
    parser.addoption("--lanes", metavar="WORDS", help="lanes to run, or `all`; without it `fast`, or what is named")


def pytest_configure(config: pytest.Config) -> None:
    """Every process of a run knows its lanes."""
    config.addinivalue_line("markers", "lane(word): the lane of a test that is not in the lane of its file")
    _check_places(config)
    config.pluginmanager.register(Lanes(config))


def _check_places(config: pytest.Config) -> None:
    """With several workers, what pytest itself says of a place that is not there is lost."""
    for name in config.args:
        place = name.partition("::")[0]
        if not (config.invocation_params.dir / place).exists():
            raise pytest.UsageError(f"There is no file or folder {place}.")


def lane_of(name: str) -> str:
    """The lane of a file, by its name below the root of the repository."""
    fitting = [place for place in PLACES if name == place or name.startswith(f"{place}/")]
    return PLACES[max(fitting, key=len, default="tests")]


def chosen_lanes(config: pytest.Config) -> frozenset[str]:
    """The lanes of this run."""
    words = config.getoption("lanes")
    if words is None:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        return frozenset(LANES) if named else frozenset({"fast"})
    if words == "all":
        return frozenset(LANES)
    found = frozenset(words.replace(",", " ").split())
    if unknown := sorted(found - LANES.keys()):
        raise pytest.UsageError(f"There is no lane {', '.join(unknown)}. There are: all, {', '.join(LANES)}.")
    return found


class Lanes:
    """Leaves out the files and tests of other lanes, and says what each lane took."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._chosen = chosen_lanes(config)
        config.option.lanes = " ".join(self._chosen)  # a worker is told its files by name, as if a person had
        self._spent: dict[str, Spent] = defaultdict(Spent)
        self._of_files: defaultdict[str, float] = defaultdict(float)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """A file of another lane is not even imported."""
        if not collection_path.name.startswith("test_") or not collection_path.is_relative_to(ROOT):
            return None
        return True if lane_of(collection_path.relative_to(ROOT).as_posix()) not in self._chosen else None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Each test knows its lane; those of lanes that are not chosen go, and long ones begin first."""
        kept: list[pytest.Item] = []
        left: list[pytest.Item] = []
        for item in items:
            lane = _lane_of_item(item)
            item.user_properties.append(("lane", lane))
            (kept if lane in self._chosen else left).append(item)
        items[:] = sorted(kept, key=lambda item: _own_bound_of(item) <= FAST_SECONDS)
        if left:
            self._config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """The bound of a test is for a quiet machine; it grows with what this one has to do when the test begins."""
        if not self._config.getoption("timeout"):
            item.add_marker(pytest.mark.timeout(stretched(_bound_of(item))), append=False)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what it took."""
        lane = str(dict(report.user_properties).get("lane", "?"))
        tests, seconds = self._spent[lane]
        self._spent[lane] = Spent(tests + (report.when == "call"), seconds + report.duration)
        self._of_files[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line per lane, the files that took longest, and the tests that are open."""
        terminalreporter.section("lanes")
        for lane, (tests, seconds) in sorted(self._spent.items()):
            terminalreporter.write_line(f"{lane:12} {tests:6} tests {seconds:8.0f} s of all workers")
        for name, took in sorted(self._of_files.items(), key=lambda each: -each[1])[:_FILES_TOLD]:
            terminalreporter.write_line(f"{took:8.0f} s {name}")
        for name, reason in OPEN.items():
            terminalreporter.write_line(f"OPEN {name}: {reason}")


def _own_bound_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


def _bound_of(item: pytest.Item) -> float:
    if own := _own_bound_of(item):
        return own
    return FAST_SECONDS if _lane_of_item(item) == "fast" else float(item.config.getini("timeout"))


def _lane_of_item(item: pytest.Item) -> str:
    name = item.nodeid.partition("[")[0]
    if name in OPEN:
        return "open"
    marker = item.get_closest_marker("lane")
    lane = str(marker.args[0]) if marker else lane_of(name.partition("::")[0])
    assert lane in LANES, f"{name} is in lane {lane!r}, which is not in tests/support/lanes.py"
    return lane
