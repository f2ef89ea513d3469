"""What agents declare is what the suite found; the committed results are those of the declared agents."""

import httpx
import pytest

from ostler.agents import ADAPTERS
from ostler.agents.adapter import Adapter
from ostler.agents.coverage import coverage_of, examined
from ostler.base.casing import camel
from ostler.conformance.behaviours import BY_ID, REQUIRED
from ostler.conformance.matrix import coverage_from, shown, stability_from
from ostler.wire.agents import Capabilities
from tools.agent_cache import pinned

RUN = "run `make conformance ARGS={}` and commit what it writes"
AGENTS = [pytest.param(adapter, id=adapter.info.id) for adapter in ADAPTERS]


@pytest.mark.parametrize("adapter", AGENTS)
def test_the_results_are_complete_and_of_the_version_we_install(adapter: Adapter) -> None:
    found = examined().get(adapter.info.id)
    assert found is not None, RUN.format(adapter.info.id)
    expected = {behaviour for behaviours in shown(adapter).values() for behaviour in behaviours}
    assert (found.version, set(found.results)) == (pinned(adapter), expected), RUN.format(adapter.info.id)


@pytest.mark.parametrize("adapter", AGENTS)
def test_an_agent_declares_exactly_the_capabilities_that_the_suite_found(adapter: Adapter) -> None:
    results = examined()[adapter.info.id].results
    behaviours_of = shown(adapter)
    passing = {
        name for name, behaviours in behaviours_of.items() if all(results.get(each) == "passes" for each in behaviours)
    }
    declared = {name for name in behaviours_of if getattr(adapter.info.capabilities, name)}
    unproven, undeclared = sorted(declared - passing), sorted(passing - declared)
    assert unproven == [], f"declared but not shown; correct the adapter, or {RUN.format(adapter.info.id)}"
    assert undeclared == [], "shown but not declared; say so in the adapter's capabilities"


@pytest.mark.parametrize("adapter", AGENTS)
def test_only_what_is_not_converted_is_called_unconverted(adapter: Adapter) -> None:
    info = adapter.info
    declared = {name for name in Capabilities.__struct_fields__ if getattr(info.capabilities, name)}
    assert set(info.unconverted) <= set(Capabilities.__struct_fields__) - declared


@pytest.mark.parametrize("adapter", AGENTS)
def test_the_coverage_follows_from_the_results(adapter: Adapter) -> None:
    found = examined()[adapter.info.id]
    assert coverage_of(adapter.info.id) == coverage_from(adapter, found.results), RUN.format(adapter.info.id)


def test_coverage_has_three_values() -> None:
    assert coverage_of("codex")["questions"] == "converted"
    assert coverage_of("codex")["shared_process"] == "native"
    assert coverage_of("claude-code")["command_execution"] == "none"


def test_every_agent_tells_its_tools_and_their_results() -> None:
    told = {coverage_of(adapter.info.id)[name] for adapter in ADAPTERS for name in ("tool_calls", "tool_results")}
    assert told == {"converted"}


@pytest.mark.parametrize("adapter", AGENTS)
def test_an_agent_of_the_table_has_what_is_required(adapter: Adapter) -> None:
    coverage = coverage_of(adapter.info.id)
    assert {name: coverage[name] for name in REQUIRED} == dict.fromkeys(REQUIRED, "converted")


def test_an_agent_is_stable_when_four_of_five_behaviours_pass() -> None:
    found = {adapter.info.id: stability_from(adapter, examined()[adapter.info.id].results) for adapter in ADAPTERS}
    assert (found["codex"], found["openhands"]) == ("stable", "experimental")


def test_no_result_is_about_something_that_is_gone() -> None:
    assert set(examined()) <= {adapter.info.id for adapter in ADAPTERS}
    assert {behaviour for found in examined().values() for behaviour in found.results} <= set(BY_ID)


def test_the_catalogue_tells_the_coverage(api: httpx.Client) -> None:
    told = {agent["id"]: agent.get("coverage") for agent in api.get("/agents").json()["items"]}
    found = {adapter.info.id: coverage_of(adapter.info.id) for adapter in ADAPTERS}
    assert told == {agent: {camel(name): value for name, value in each.items()} for agent, each in found.items()}
