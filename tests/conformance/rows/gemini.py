"""Gemini CLI."""

from ostler.agents.gemini import ADAPTER
from tests.conformance.driver import Row

ROW = Row(ADAPTER, provider="gemini", model="gemini-2.5-pro")
