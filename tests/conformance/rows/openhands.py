"""OpenHands; it repeats a failed request for longer than a test should wait, so the turn's own limit ends it."""

from ostler.agents.openhands import ADAPTER
from tests.conformance.driver import Row

ROW = Row(ADAPTER, provider="openai", model="scripted-large", turn_timeout_seconds=60.0)
