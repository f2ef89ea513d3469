"""The table of agents: adding one is one file and one line here."""

from ostler.agents.adapter import Adapter
from ostler.agents.mock import MockAdapter

ADAPTERS: tuple[Adapter, ...] = (MockAdapter(),)
