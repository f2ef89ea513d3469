"""How each agent of the table reaches the scripted model; one that is not listed finds it by its variables."""

from ostler.agents.adapter import Adapter
from ostler.conformance.amp_service import AmpService
from ostler.conformance.scripts import for_mock
from ostler.conformance.stage import Row


def common_variables(url: str) -> dict[str, str]:
    """The variables by which most programs find their model, for agents that we know nothing about."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-test",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "sk-test",
    }


ROWS: dict[str, Row] = {
    "ostler": Row(provider="openai", model="scripted-large"),
    "mock": Row(script=for_mock, without={"error.recovers": "it has no provider that could fail"}),
    "claude-code": Row(provider="anthropic"),
    "codex": Row(provider="openai", model="gpt-5.5"),
    "copilot": Row(provider="openai", model="scripted-large"),
    "opencode": Row(provider="openai", model="scripted-large"),
    "pi": Row(provider="openai", model="scripted-large"),
    "amp": Row(
        service=AmpService,
        variables=lambda url: {"AMP_URL": url, "AMP_API_KEY": "sgamp_sk-test"},
        without={"error.recovers": "it ends at the first failure instead of trying again"},
    ),
    "gemini": Row(provider="gemini", model="gemini-2.5-pro"),
    "qwen": Row(provider="openai", model="gpt-5.5"),
    "kimi": Row(provider="openai", model="scripted-large"),
    "vibe": Row(provider="openai", model="scripted-large"),
    "openhands": Row(  # all of it share one tmux server
        provider="openai",
        model="scripted-large",
        alone=True,
        without={"usage": "its counts are for the whole conversation"},
    ),
}


def row_of(adapter: Adapter) -> Row:
    """The agent's row; one that we know nothing about gets the usual variables."""
    return ROWS.get(adapter.info.id) or Row(variables=common_variables)
