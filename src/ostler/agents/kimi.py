"""Kimi Code, over ACP."""

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.profile import Profile, Setup, toml_text
from ostler.agents.adapter import Credential, Login, all_but
from ostler.agents.sources import Npm, OnPath
from ostler.wire.agents import Mode
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec


def _configure(spec: AgentSpec) -> Setup:
    env = {"KIMI_CODE_NO_AUTO_UPDATE": "1"}
    files = {} if spec.provider is None else {".kimi-code/config.toml": _config(spec.provider, spec.model)}
    return Setup(env=env, files=files)


def _config(provider: Provider, model: str | None) -> str:
    name = model or "default"
    return toml_text(
        {
            "default_model": "session",
            "telemetry": False,
            "providers.session": {
                "type": provider.type,
                "base_url": f"{provider.base_url.rstrip('/')}/v1",
                "api_key": provider.api_key or "none",
            },
            "models.session": {
                "provider": "session",
                "model": name,
                "max_context_size": 200_000,
                "capabilities": ["thinking", "image_in", "tool_use"],
            },
        }
    )


KIMI = Profile(
    id="kimi",
    name="Kimi Code",
    capabilities=all_but("command_execution", "plan_mode", "shared_process", "steering", "subagents", "variants"),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
        "plan_mode": "it asks only after the plan was written to a file of its own",
    },
    sources=(
        OnPath(program="kimi"),
        Npm(
            packages={"@moonshot-ai/kimi-code": "2.1.0"},
            program="@moonshot-ai/kimi-code/dist/main.mjs",
            needs_node="22.19",
        ),
    ),
    args=("acp",),
    credentials=(Credential(name="KIMI_API_KEY", env=("KIMI_API_KEY",)),),
    login=Login(account="a Kimi account", files=(".kimi-code/config.toml", ".kimi-code/credentials")),
    providers=("openai",),
    configure=_configure,
    permission_modes={"default": "default", "plan": "plan", "bypass": "yolo"},
    modes=(
        Mode(id="default", name="Default", description="Asks before it changes files or runs commands."),
        Mode(id="auto", name="Auto", description="Does safe things without asking."),
        Mode(id="yolo", name="YOLO", description="Does everything without asking."),
        Mode(id="plan", name="Plan", description="Looks and plans, but changes nothing."),
    ),
    model_at_start=True,
    titles_are_names=True,
    arguments_in_content=True,
)
ADAPTER = AcpAdapter(KIMI)
