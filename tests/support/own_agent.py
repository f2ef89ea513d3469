"""Ostler's own agent with the scripted model in the place of a provider."""

import json
import sys

from ostler.conformance.model import ScriptedModel


def with_model(model: ScriptedModel, *program: str) -> dict[str, str]:
    """The variables of a server whose own agent has a key of OpenRouter, and reaches the model there.

    `program` stands in for the agent.
    """
    given = ["OPENROUTER_API_KEY=sk-or-test", f"OPENROUTER_BASE_URL={model.url}/v1"]
    command = ["env", *given, *(program or (sys.executable, "-I", "-X", "utf8", "-m", "ostler.agent"))]
    return {"OSTLER_AGENTS": json.dumps({"ostler": {"command": command}}), "OSTLER_DEFAULT_AGENT": "ostler"}
