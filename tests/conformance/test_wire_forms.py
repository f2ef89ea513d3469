"""Ostler's own agent behaves the same over every wire form of its models."""

from pathlib import Path

import msgspec
import pytest

from ostler.agents.ostler import OstlerAdapter
from ostler.conformance.behaviours import BEHAVIOURS, BY_ID, has
from ostler.conformance.stage import Row
from ostler.conformance.suite import play
from tools.agent_cache import Search

ADAPTER = OstlerAdapter()
FORMS = {
    "messages": Row(provider="anthropic", model="claude-sonnet-5-scripted"),
    "responses": Row(
        model="openai/scripted-large",
        variables=lambda url: {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{url}/v1"},
    ),
    "gemini": Row(provider="gemini", model="gemini-3-scripted"),
    "openrouter": Row(
        model="openrouter/z-ai/scripted",
        variables=lambda url: {"OPENROUTER_API_KEY": "sk-test", "OPENROUTER_BASE_URL": f"{url}/v1"},
    ),
}
IN_EVERY_RUN = frozenset({"tool.result"})
_AGENTS = pytest.mark.lane("agents")
GRID = [
    pytest.param(form, behaviour.id, id=f"{form}-{behaviour.id}", marks=[] if behaviour.id in IN_EVERY_RUN else _AGENTS)
    for form in FORMS
    for behaviour in BEHAVIOURS
    if has(ADAPTER.info.capabilities, behaviour)
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("form", "behaviour"), GRID)
async def test_the_agent_behaves_over(form: str, behaviour: str, tmp_path: Path, search: Search) -> None:
    suite = msgspec.structs.replace(search.suite(ADAPTER), row=FORMS[form])
    stage = suite.stage(BY_ID[behaviour], tmp_path)
    assert (await play(BY_ID[behaviour], stage), stage.unparsed) == (None, [])
