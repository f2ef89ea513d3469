"""OpenHands CLI, over ACP."""

from typing import Any

import msgspec

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.profile import Profile, Setup
from ostler.agents.adapter import Credential, Login, all_but
from ostler.agents.sources import OnPath, Pypi
from ostler.wire.agents import Mode
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec

_ENV = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it tries to fetch one before it says a word
    "OPENHANDS_SUPPRESS_BANNER": "1",
}
_TOOLS = ("terminal", "file_editor", "task_tracker", "task_tool_set")
_LONGEST_TMUX_FOLDER = 80  # its socket's whole name must stay below 108 characters


def _configure(spec: AgentSpec) -> Setup:
    # otherwise all sessions would share one tmux server, and the end of one would end the commands of all
    env = {"TMUX_TMPDIR": spec.home} if len(spec.home) <= _LONGEST_TMUX_FOLDER else {}
    if spec.provider is None:
        return Setup(env=env)
    settings = {
        "kind": "Agent",
        "llm": _model(spec.provider, spec.model or "default"),
        "tools": [{"name": name} for name in _TOOLS],
        "system_prompt_kwargs": {"cli_mode": True, "llm_security_analyzer": True},
    }
    return Setup(env=env, files={".openhands/agent_settings.json": msgspec.json.encode(settings).decode()})


def _model(provider: Provider, model: str) -> dict[str, Any]:
    base = provider.base_url.rstrip("/")
    return {
        "model": f"{provider.type}/{model}",
        "api_key": provider.api_key or "none",
        "base_url": f"{base}/v1" if provider.type == "openai" else base,
        "usage_id": "agent",
        "num_retries": 2,
    }


OPENHANDS = Profile(
    id="openhands",
    name="OpenHands",
    capabilities=all_but(
        "command_execution",
        "images",
        "mcp_tools",
        "plan_mode",
        "questions",
        "reasoning",
        "shared_process",
        "status",
        "steering",
        "streaming_deltas",
        "subagents",
        "variants",
    ),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
        "reasoning": "thoughts come only beside tool calls, mixed with what the model says there",
        "status": "its counts are for the whole conversation",
    },
    sources=(
        OnPath(program="openhands"),
        Pypi(package="openhands", version="1.16.0", python="3.12", program="openhands"),
    ),
    args=("acp",),
    env=_ENV,
    credentials=(Credential(name="LLM_API_KEY", env=("LLM_API_KEY",)),),
    login=Login(
        account="an OpenHands Cloud account",
        files=(".openhands/cloud/api_key.txt", ".openhands/agent_settings.json"),
    ),
    providers=("openai", "anthropic"),
    configure=_configure,
    permission_modes={"default": "always-ask", "bypass": "always-approve"},
    modes=(
        Mode(id="always-ask", name="Always ask", description="Asks before every action."),
        Mode(id="llm-approve", name="LLM approve", description="Lets a model decide which actions are safe."),
        Mode(id="always-approve", name="Always approve", description="Does everything without asking."),
    ),
    model_at_start=True,
    hidden_thoughts=("System Prompt:",),
    chatter=(b"Goodbye!",),
    stand_in="confirmation-",
)
ADAPTER = AcpAdapter(OPENHANDS)
