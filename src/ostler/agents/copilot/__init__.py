"""GitHub Copilot CLI: one headless process per session, JSON-RPC with Content-Length headers on its pipes."""

from pathlib import PurePath
from typing import Any, assert_never

from ostler.agents.adapter import Credential, Info, Installation, Launch, Login, all_but
from ostler.agents.copilot.translator import CopilotTranslator
from ostler.agents.sources import Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode
from ostler.wire.providers import HttpMcpServer, McpServer, Provider, StdioMcpServer
from ostler.wire.running import AgentSpec

VERSION = "1.0.102"
VARIANTS = ("low", "medium", "high", "xhigh", "max")
PROVIDERS = ("openai", "anthropic")


def _unpacked(path: str) -> dict[str, str]:
    """Where the program unpacks itself (235 MB): once beside a package that we installed, not into every home."""
    folder = PurePath(path).parent
    if folder.parent.parts[-2:] != ("node_modules", "@github"):
        return {}
    return {"COPILOT_PKG_CACHE_HOME": str(folder / "unpacked")}


INFO = Info(
    id="copilot",
    name="GitHub Copilot CLI",
    login=Login(
        account="a GitHub account that has Copilot",
        files=(".copilot/config.json",),
        command=("login", "--device-code"),
        confirms="Store token in plaintext config file?",
        env={"COPILOT_AUTO_UPDATE": "false"},
        env_of=_unpacked,
    ),
    capabilities=all_but("shared_process"),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
    },
    modes=(
        Mode(id="interactive", name="Interactive", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Plans first and asks before it changes anything."),
        Mode(id="autopilot", name="Autopilot", description="Goes on by itself until it says that the task is done."),
    ),
)


class CopilotAdapter:
    """GitHub's agent."""

    info = INFO
    sources: tuple[Source, ...] = (
        OnPath(program="copilot"),
        Npm(
            packages={"@github/copilot-{platform}": VERSION},
            program="@github/copilot-{platform}/copilot",
            platforms={"linux-x64-musl": "linuxmusl-x64", "linux-arm64-musl": "linuxmusl-arm64"},
        ),
    )
    """The npm packages of its platforms hold the whole program."""
    credentials: tuple[Credential, ...] = (
        Credential(name="COPILOT_GITHUB_TOKEN", env=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")),
    )
    """A GitHub token with a Copilot subscription."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; what Copilot cannot do is refused here."""
        _check("variant", spec.variant, VARIANTS)
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        argv = (*installation.command, "--headless", "--stdio", "--no-auto-update", "--log-level", "error")
        env = {"COPILOT_AUTO_UPDATE": "false", **_unpacked(installation.path)}
        if spec.provider is None:
            return Launch(argv=argv, env=env, framing="content-length")
        _check("provider type", spec.provider.type, PROVIDERS)
        if spec.model is None:
            raise Unprocessable(
                reason="Agent 'copilot' needs a model when it is given a provider. Name one in `model`."
            )
        env |= {
            "COPILOT_OFFLINE": "true",  # nothing else on the network is needed, so nothing else is asked
            "COPILOT_PROVIDER_BASE_URL": _base_url(spec.provider),
            "COPILOT_PROVIDER_TYPE": spec.provider.type,
            "COPILOT_MODEL": spec.model,
        }
        return Launch(argv=(*argv, "--no-auto-login"), env=env, framing="content-length")

    def translator(self, spec: AgentSpec) -> CopilotTranslator:
        """A fresh translator for one process."""
        mode = "plan" if spec.permission_mode == "plan" else spec.mode
        return CopilotTranslator(spec, opening(spec), mode)


def opening(spec: AgentSpec) -> dict[str, Any]:
    """What a session is made or resumed with; the provider's key goes this way, where no command can read it."""
    wanted: dict[str, Any] = {
        "workingDirectory": spec.cwd,
        "clientName": "ostler",
        "streaming": True,
        "includeSubAgentStreamingEvents": True,
        "requestPermission": True,
        "requestUserInput": True,
        "requestExitPlanMode": True,
        "requestElicitation": False,
        "requestAutoModeSwitch": False,
        "envValueMode": "direct",
        "model": spec.model,
        "reasoningEffort": spec.variant,
        "systemMessage": {"mode": "append", "content": spec.instructions} if spec.instructions else None,
        "provider": None if spec.provider is None else _provider(spec.provider, spec.model or ""),
        "mcpServers": {name: _mcp_server(server) for name, server in spec.mcp_servers.items()} or None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _base_url(provider: Provider) -> str:
    root = provider.base_url.rstrip("/")
    return f"{root}/v1" if provider.type == "openai" else root


def _provider(provider: Provider, model: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {"type": provider.type, "baseUrl": _base_url(provider), "apiKey": provider.api_key}
    if provider.type == "openai":
        wanted["wireApi"] = "responses" if model.startswith("gpt-5") else "completions"
    return {name: value for name, value in wanted.items() if value is not None}


def _mcp_server(server: McpServer) -> dict[str, Any]:
    match server:
        case StdioMcpServer():
            return {
                "type": "local",
                "command": server.command,
                "args": list(server.args),
                "env": server.env,
                "tools": ["*"],
            }
        case HttpMcpServer():
            return {"type": "http", "url": server.url, "headers": server.headers, "tools": ["*"]}
        case _:
            assert_never(server)


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'copilot' has no {what} '{value}'. Possible: {', '.join(possible)}.")
