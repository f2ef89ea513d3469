"""Pi against the scripted model."""

from ostler.agents.pi import PiAdapter
from tests.conformance.driver import Row

ROW = Row(PiAdapter(), provider="openai", model="scripted-large")
