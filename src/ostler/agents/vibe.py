"""Mistral Vibe, over ACP."""

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.profile import Profile, Setup, toml_text
from ostler.agents.adapter import MISTRAL_KEY, Credential, Login, all_but
from ostler.agents.sources import OnPath, Pypi
from ostler.wire.agents import Mode
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec

_KEY = "OSTLER_PROVIDER_KEY"


def _configure(spec: AgentSpec) -> Setup:
    if spec.provider is None:
        return Setup()
    return Setup(
        env={_KEY: spec.provider.api_key or "none"},
        files={".vibe/config.toml": _config(spec.provider, spec.model or "devstral-latest")},
    )


def _config(provider: Provider, model: str) -> str:
    return toml_text(
        {
            "active_model": "session",
            "enable_telemetry": False,
            "enable_update_checks": False,
            "enable_auto_update": False,
            "[providers]": {
                "name": "session",
                "api_base": f"{provider.base_url.rstrip('/')}/v1",
                "api_key_env_var": _KEY,
            },
            "[models]": {"name": model, "provider": "session", "alias": "session", "supports_images": True},
        }
    )


VIBE = Profile(
    id="vibe",
    name="Mistral Vibe",
    capabilities=all_but(
        "command_execution", "mcp_tools", "plan_mode", "shared_process", "steering", "subagents", "variants"
    ),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
        "mcp_tools": "tools of MCP servers are hidden behind a search tool of its own",
    },
    sources=(
        OnPath(program="vibe-acp"),
        Pypi(package="mistral-vibe", version="3.0.2", python="3.13", program="vibe-acp"),
    ),
    credentials=(Credential(name="MISTRAL_API_KEY", env=("MISTRAL_API_KEY",), check=MISTRAL_KEY),),
    login=Login(account="a Mistral account", files=(".vibe/.env",)),
    unusable_logins=("vibe-setup",),
    providers=("openai",),
    configure=_configure,
    permission_modes={"default": "ask", "bypass": "auto-approve"},
    modes=(
        Mode(id="ask", name="Ask", description="Asks before it changes files or runs commands."),
        Mode(id="accept-edits", name="Accept edits", description="Changes files without asking."),
        Mode(id="auto-approve", name="Auto approve", description="Does everything without asking."),
    ),
    model_at_start=True,
)
ADAPTER = AcpAdapter(VIBE)
