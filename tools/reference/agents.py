"""The table of agents and what each can do."""

from collections.abc import Sequence

import msgspec

from ostler.agents.adapter import Adapter
from ostler.wire.agents import Capabilities
from tools.reference.markdown import code, table


def agent_table(adapters: Sequence[Adapter]) -> str:
    """One column per agent, one row per capability."""
    names = [field.name for field in msgspec.structs.fields(Capabilities)]
    rows = [
        (name.replace("_", " "), *("yes" if getattr(adapter.info.capabilities, name) else "" for adapter in adapters))
        for name in names
    ]
    return table(("", *(f"{adapter.info.name} ({code(adapter.info.id)})" for adapter in adapters)), rows)
