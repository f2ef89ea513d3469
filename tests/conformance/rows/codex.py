"""Codex against a provider that speaks OpenAI's Responses."""

from ostler.agents.codex import CodexAdapter
from tests.conformance.driver import Row

ROW = Row(CodexAdapter(), provider="openai", model="gpt-5.5")
