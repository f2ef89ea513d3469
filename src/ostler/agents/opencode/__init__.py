"""OpenCode: an `opencode serve` per session or for several, spoken to over HTTP through a bridge of the session."""

import json
import sys
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

from ostler.agents import instructions
from ostler.agents.adapter import (
    ANTHROPIC_KEY,
    GEMINI_KEY,
    OPENAI_KEY,
    Credential,
    Info,
    Installation,
    Launch,
    Login,
    all_but,
    of_shared,
)
from ostler.agents.opencode.translator import OpenCodeTranslator
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode
from ostler.wire.providers import HttpMcpServer, McpServer, Provider, ProviderType, StdioMcpServer
from ostler.wire.running import AgentSpec

BRIDGE = Path(__file__).parents[2] / "programs" / "bridges" / "http.py"
SHARED = BRIDGE.with_name("shared.py")
ALONE_SECONDS = 10.0
"""How long a shared server stays when no session uses it."""
LARGEST_EVENT = 64 * 2**20
VERSION = "1.18.18"
PROVIDER = "ostler"
"""Our name for the provider that a session brings along."""
CONTEXT, OUTPUT = 200_000, 32_000
"""What we tell OpenCode about the limits of a model it does not know."""
INFO = Info(
    id="opencode",
    name="OpenCode",
    login=Login(
        account="a ChatGPT account",
        files=(".local/share/opencode/auth.json",),
        command=("auth", "login", "-p", "openai", "-m", "ChatGPT Pro/Plus (headless)"),
    ),
    capabilities=all_but("shared_process"),
    can_share=True,
    unconverted={
        "shared_process": "each session has a process of its own, unless the setting `shared_agents` names `opencode`",
    },
    modes=(
        Mode(id="build", name="Build", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Looks and writes a plan, but changes nothing else."),
    ),
)
_SDKS: dict[ProviderType, tuple[str, str]] = {
    "openai": ("@ai-sdk/openai-compatible", "/v1"),
    "anthropic": ("@ai-sdk/anthropic", "/v1"),
    "gemini": ("@ai-sdk/google", "/v1beta"),
}
"""The client that OpenCode has built in for a kind of provider, and what it wants after the root of an address."""
_ASK = {
    "*": "ask",
    "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
    **dict.fromkeys(("glob", "grep", "list", "lsp", "skill", "task", "todoread", "todowrite"), "allow"),
    **dict.fromkeys(("question", "plan_enter", "plan_exit"), "allow"),
}
_PLAN_ONLY = {"*": "deny", ".opencode/plans/*.md": "allow", "*/opencode/plans/*.md": "allow"}
_ENV = {
    "OPENCODE_CLIENT": "cli",  # others are not offered the question tool
    "OPENCODE_EXPERIMENTAL_PLAN_MODE": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
_PLUGIN = "@opencode-ai/plugin"
_NO_PLUGINS = {
    ".config/opencode/package-lock.json": json.dumps({"packages": {"": {"dependencies": {_PLUGIN: VERSION}}}}),
    ".config/opencode/node_modules/.ostler": "",
}
"""Files of a session's home that say that the library for plugins is installed: nothing there needs it, and OpenCode
would download it anew for every session, 94 MB that keep a processor busy for eight seconds."""
_OWN_PROVIDER_ENV = {"OPENCODE_DISABLE_MODELS_FETCH": "1"}  # the list of the world's models is of no use then
_CONFIG = "OPENCODE_CONFIG_CONTENT"
_USER, _PASSWORD = "opencode", "OPENCODE_SERVER_PASSWORD"
_PLATFORMS = ("linux-x64", "linux-x64-musl", "linux-arm64", "linux-arm64-musl", "darwin-arm64", "darwin-x64")
_ABOUT = "https://api.github.com/repos/anomalyco/opencode/releases"
_RELEASES = "https://github.com/anomalyco/opencode/releases/download/v{version}/opencode-{platform}"
_STORED = ".local/share/opencode/auth.json"


class OpenCodeAdapter:
    """OpenCode by its HTTP server."""

    info = INFO
    sources: tuple[Source, ...] = (
        Download(
            version_url=f"{_ABOUT}/latest",
            url=f"{_RELEASES}.tar.gz",
            platforms={name: name for name in _PLATFORMS if name.startswith("linux")},
            archive="tar.gz",
            program="opencode",
            checksum_url=f"{_ABOUT}/tags/v{{version}}",
        ),
        Download(
            version_url=f"{_ABOUT}/latest",
            url=f"{_RELEASES}.zip",
            platforms={name: name for name in _PLATFORMS if name.startswith("darwin")},
            archive="zip",
            program="opencode",
            checksum_url=f"{_ABOUT}/tags/v{{version}}",
        ),
        OnPath(program="opencode"),
        Npm(
            packages={"opencode-{platform}": VERSION},
            program="opencode-{platform}/bin/opencode",
        ),
    )
    """On the PATH, from the vendor's releases, or from npm."""
    credentials: tuple[Credential, ...] = (
        Credential(
            name="ANTHROPIC_API_KEY",
            env=("ANTHROPIC_API_KEY",),
            files=((_STORED, "anthropic.key"),),
            check=ANTHROPIC_KEY,
        ),
        Credential(name="OPENAI_API_KEY", env=("OPENAI_API_KEY",), files=((_STORED, "openai.key"),), check=OPENAI_KEY),
        Credential(name="GEMINI_API_KEY", env=("GEMINI_API_KEY",), files=((_STORED, "google.key"),), check=GEMINI_KEY),
        Credential(name="OPENCODE_API_KEY", env=("OPENCODE_API_KEY",), files=((_STORED, "opencode.key"),)),
    )
    """The usual keys; OpenCode finds the provider by the variable."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; whatever we decide goes into one variable, so no file of the user is touched."""
        _mode(spec)
        serve = (*installation.command, "serve", "--hostname", "127.0.0.1", "--port", "0")
        if spec.shared is None:
            return self._server_launch(spec, _bridge(spec, *serve))
        holder = (sys.executable, "-I", "-S", str(SHARED), spec.shared, str(ALONE_SECONDS), _USER, _PASSWORD, *serve)
        return Launch(argv=_bridge(spec, f"@{spec.shared}"), shared=self._server_launch(of_shared(spec), holder))

    def _server_launch(self, spec: AgentSpec, argv: tuple[str, ...]) -> Launch:
        model = _model(spec)
        config: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            **_permissions(spec),
            **({} if model is None else {"model": "/".join(model), "small_model": "/".join(model)}),
            **({} if spec.provider is None or model is None else _provider(spec.provider, model[1])),
            "mcp": {name: _mcp(server) for name, server in spec.mcp_servers.items()},
            "instructions": [path] if (path := instructions.path_of(spec)) else [],
        }
        return Launch(
            argv=argv,
            env={**_ENV, **({} if spec.provider is None else _OWN_PROVIDER_ENV), _CONFIG: json.dumps(config)},
            files={**(_NO_PLUGINS if instructions.has_own_home(spec) else {}), **instructions.files_of(spec)},
        )

    def translator(self, spec: AgentSpec) -> OpenCodeTranslator:
        """A fresh translator for one process."""
        return OpenCodeTranslator(spec, model=_model(spec), mode=_mode(spec))


def _bridge(spec: AgentSpec, *server: str) -> tuple[str, ...]:
    events = f"/event?directory={quote(spec.cwd, safe='')}"
    return (sys.executable, "-I", "-S", str(BRIDGE), events, _USER, _PASSWORD, str(LARGEST_EVENT), *server)


def _model(spec: AgentSpec) -> tuple[str, str] | None:
    """Provider and model; a session's own provider may have any."""
    if spec.provider is not None:
        if spec.model is None:
            raise Unprocessable(reason="Agent 'opencode' needs a model when the session brings a provider.")
        return PROVIDER, spec.model.removeprefix(f"{PROVIDER}/")
    if spec.model is None:
        return None
    provider, slash, model = spec.model.partition("/")
    if not (provider and slash and model):
        example = "anthropic/claude-sonnet-4-5"
        raise Unprocessable(reason=f"Agent 'opencode' has no model '{spec.model}'. Name it as in '{example}'.")
    return provider, model


def _mode(spec: AgentSpec) -> str | None:
    if spec.permission_mode != "plan":
        return spec.mode
    if spec.mode not in {None, "plan"}:
        reason = f"Agent 'opencode' cannot only plan in the mode '{spec.mode}'. Possible: plan."
        raise Unprocessable(reason=reason)
    return "plan"


def _permissions(spec: AgentSpec) -> dict[str, Any]:
    """Rules for all agents; those of the workspace's own configuration come before them and so lose."""
    rules: Any = {"*": "allow"} if spec.permission_mode == "bypass" else _ASK
    same = {"permission": rules}
    plans = {"*": rules["*"], f"{spec.home}/.local/share/opencode/plans/*": "allow"}
    planning = {"permission": {**rules, "edit": _PLAN_ONLY, "external_directory": plans}}
    return {"permission": rules, "agent": {"build": same, "general": same, "plan": planning}}


def _provider(provider: Provider, model: str) -> dict[str, Any]:
    package, suffix = _SDKS[provider.type]
    described = {
        "name": model,
        "reasoning": True,
        "tool_call": True,
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": CONTEXT, "output": OUTPUT},
    }
    options = {"baseURL": provider.base_url.rstrip("/") + suffix, "apiKey": provider.api_key or "none"}
    offered = {"npm": package, "name": "Session", "options": options, "models": {model: described}}
    return {"provider": {PROVIDER: offered}, "enabled_providers": [PROVIDER]}


def _mcp(server: McpServer) -> dict[str, Any]:
    match server:
        case StdioMcpServer():
            return {"type": "local", "command": [server.command, *server.args], "environment": server.env}
        case HttpMcpServer():
            return {"type": "remote", "url": server.url, "headers": server.headers}
        case _:
            assert_never(server)
