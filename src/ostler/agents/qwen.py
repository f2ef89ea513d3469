"""Qwen Code, over ACP."""

from typing import Any

import msgspec

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.profile import Profile, Setup, extension
from ostler.agents.adapter import Credential, all_but
from ostler.agents.sources import Npm, OnPath
from ostler.wire.agents import Mode
from ostler.wire.running import AgentSpec


def _configure(spec: AgentSpec) -> Setup:
    env = {"QWEN_CODE_NO_RELAUNCH": "true"}
    settings: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "model": {"generationConfig": {"maxRetries": 0}},
    }
    if spec.mcp_servers:
        # otherwise the model must search for their tools before it knows them
        settings["tools"] = {"toolSearch": {"enabled": False}}
    if spec.model is not None:
        settings["model"]["name"] = spec.model
        env["OPENAI_MODEL"] = spec.model
    if spec.provider is not None or "OPENAI_API_KEY" in spec.env:
        settings["security"] = {"auth": {"selectedType": "openai"}}
    if spec.provider is not None:
        env["OPENAI_BASE_URL"] = f"{spec.provider.base_url.rstrip('/')}/v1"
        env["OPENAI_API_KEY"] = spec.provider.api_key or "none"
    files = {".qwen/settings.json": msgspec.json.encode(settings).decode()}
    return Setup(env=env, files=files | extension(".qwen", "qwen-extension.json", spec))


QWEN = Profile(
    id="qwen",
    name="Qwen Code",
    capabilities=all_but("command_execution", "shared_process", "variants"),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
    },
    sources=(
        OnPath(program="qwen"),
        Npm(
            packages={"@qwen-code/qwen-code": "0.24.4"},
            program="@qwen-code/qwen-code/cli.js",
            needs_node="22",
        ),
    ),
    args=("--acp",),
    credentials=(Credential(name="OPENAI_API_KEY", env=("OPENAI_API_KEY",)),),
    unusable_logins=("openai",),
    providers=("openai",),
    configure=_configure,
    permission_modes={"default": "default", "plan": "plan", "bypass": "yolo"},
    modes=(
        Mode(id="default", name="Default", description="Asks before it changes files or runs commands."),
        Mode(id="auto-edit", name="Auto edit", description="Changes files without asking."),
        Mode(id="auto", name="Auto", description="Lets a model decide which actions are safe."),
        Mode(id="yolo", name="YOLO", description="Does everything without asking."),
        Mode(id="plan", name="Plan", description="Looks and plans, but changes nothing."),
    ),
    model_at_start=True,
    instructions_at_start=True,
    steers=True,
)
ADAPTER = AcpAdapter(QWEN)
