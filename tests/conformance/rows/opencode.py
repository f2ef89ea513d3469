"""OpenCode in the suite."""

from ostler.agents.opencode import OpenCodeAdapter
from tests.conformance.driver import Row

ROW = Row(OpenCodeAdapter(), provider="openai", model="scripted-large")
