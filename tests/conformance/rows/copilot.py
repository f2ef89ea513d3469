"""GitHub Copilot CLI."""

from ostler.agents.copilot import CopilotAdapter
from tests.conformance.driver import Row

ROW = Row(CopilotAdapter(), provider="openai", model="scripted-large")
