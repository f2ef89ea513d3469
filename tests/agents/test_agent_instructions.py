"""Instructions lie in files of the session's own home; in another home they stand before the first prompt."""

from typing import Any

import pytest

from ostler.agents.adapter import Adapter, Installation, Send
from ostler.agents.amp import AmpAdapter
from ostler.agents.gemini import ADAPTER as GEMINI
from ostler.agents.kimi import ADAPTER as KIMI
from ostler.agents.qwen import ADAPTER as QWEN
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Prompt
from tests.agents.acp_replay import SPEC

TOLD = "Speak of the heron."
FOUND = Installation(path="/bin/agent", command=("/bin/agent",))
OTHER_HOME = {"HOME": "/home/me"}
WITH_FILES = [pytest.param(adapter, id=adapter.info.id) for adapter in (AmpAdapter(), GEMINI, QWEN)]
ALL = [*WITH_FILES, pytest.param(KIMI, id="kimi")]


def _spec(**fields: Any) -> AgentSpec:
    return AgentSpec(**{**SPEC, "instructions": TOLD, **fields})


def _heard(adapter: Adapter, spec: AgentSpec) -> list[bool]:
    """Of two prompts, which ones hold the instructions."""
    translator = adapter.translator(spec)
    prompts = [Prompt(prompt_id=f"prm_{n}", turn_id=f"trn_{n}", parts=(TextPart(text="go"),)) for n in (1, 2)]
    sent = [[output.frame for output in translator.prompt(each) if isinstance(output, Send)] for each in prompts]
    return [any(TOLD.encode() in frame for frame in frames) for frames in sent]


@pytest.mark.parametrize("adapter", WITH_FILES)
def test_a_file_of_its_home_holds_them_and_no_prompt_does(adapter: Adapter) -> None:
    assert TOLD in adapter.prepare(_spec(), FOUND).files.values()
    assert _heard(adapter, _spec()) == [False, False]


@pytest.mark.parametrize("adapter", ALL)
def test_in_another_home_only_the_first_prompt_holds_them(adapter: Adapter) -> None:
    assert _heard(adapter, _spec(env=OTHER_HOME)) == [True, False]


@pytest.mark.parametrize("adapter", ALL)
def test_without_instructions_nothing_is_told(adapter: Adapter) -> None:
    assert TOLD not in adapter.prepare(_spec(instructions=None), FOUND).files.values()
    assert _heard(adapter, _spec(instructions=None, env=OTHER_HOME)) == [False, False]
