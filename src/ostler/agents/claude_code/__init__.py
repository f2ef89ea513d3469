"""Claude Code: one long-lived process per session, JSON lines with a control protocol beside the conversation."""

import msgspec

from ostler.agents import instructions
from ostler.agents.adapter import ANTHROPIC_KEY, Credential, Info, Installation, Launch, Login, Ready, all_but
from ostler.agents.claude_code.translator import ClaudeCodeTranslator
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode, Model
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.running import AgentSpec

VERSION = "2.1.325"
EFFORTS = ("low", "medium", "high", "xhigh", "max")
RETRIES = 4
MCP_FILE = ".ostler/mcp.json"
_RELEASES = "https://storage.googleapis.com/claude-code-dist-86c565f3-f756-42ad-8dfa-d59b1c096819/claude-code-releases"
_PLATFORMS = ("linux-x64", "linux-x64-musl", "linux-arm64", "linux-arm64-musl", "darwin-arm64", "darwin-x64")
_FLAGS = (
    "--print",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--include-partial-messages",
    "--forward-subagent-text",
    "--permission-prompt-tool=stdio",
)
INFO = Info(
    id="claude-code",
    name="Claude Code",
    aliases=("claude",),
    login=Login(
        account="a Claude subscription",
        files=(".claude/.credentials.json",),
        command=("auth", "login", "--claudeai"),
        status=("auth", "status"),
        expires="loginExpiresAt",
    ),
    capabilities=all_but(
        "command_execution",  # the output of a command comes only when it is over
        "shared_process",
    ),
    limits=("maxTokens",),
    modes=(
        Mode(id="build", name="Build", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Looks and plans; changes things only after the plan is approved."),
    ),
    models=(
        Model(id="default", name="Default", variants=EFFORTS),
        Model(id="opus", name="Opus", variants=EFFORTS),
        Model(id="sonnet", name="Sonnet", variants=EFFORTS),
        Model(id="haiku", name="Haiku", variants=EFFORTS),
    ),
)


class ClaudeCodeAdapter:
    """Anthropic's coding agent."""

    info = INFO
    sources: tuple[Source, ...] = (
        Download(
            version_url=f"{_RELEASES}/latest",
            url=f"{_RELEASES}/{{version}}/{{platform}}/claude",
            platforms={name: name for name in _PLATFORMS},
            program="claude",
            checksum_url=f"{_RELEASES}/{{version}}/manifest.json",
        ),
        OnPath(program="claude"),
        Npm(
            packages={"@anthropic-ai/claude-code-{platform}": VERSION},
            program="@anthropic-ai/claude-code-{platform}/claude",
        ),
    )
    """The native binary: there already, from the vendor, or from the npm registry."""
    credentials: tuple[Credential, ...] = (
        Credential(
            name="ANTHROPIC_API_KEY",
            env=("ANTHROPIC_API_KEY", "CLAUDE_API_KEY"),
            files=((".claude.json", "primaryApiKey"),),
            check=ANTHROPIC_KEY,
        ),
        Credential(
            name="CLAUDE_CODE_OAUTH_TOKEN",
            env=("CLAUDE_CODE_OAUTH_TOKEN",),
            files=((".claude/.credentials.json", "claudeAiOauth.accessToken"),),
        ),
        Credential(name="ANTHROPIC_AUTH_TOKEN", env=("ANTHROPIC_AUTH_TOKEN",)),
    )
    """An API key, or the token of a subscription."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start. Any model name is taken: the list on offer is not the list of what exists."""
        _check("variant", spec.variant, EFFORTS)
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        flags = {
            "--permission-mode": _permission_mode(spec),
            "--model": spec.model,
            "--effort": spec.variant,
            "--resume": spec.resume,
            "--mcp-config": f"{spec.home}/{MCP_FILE}" if spec.mcp_servers else None,
            "--append-system-prompt-file": instructions.path_of(spec),
        }
        given = tuple(f"{flag}={value}" for flag, value in flags.items() if value is not None)
        return Launch(argv=(*installation.command, *_FLAGS, *given), env=_environment(spec), files=_files(spec))

    def translator(self, spec: AgentSpec) -> ClaudeCodeTranslator:
        """A fresh translator for one process."""
        mode = "plan" if _permission_mode(spec) == "plan" else "build"
        ready = Ready(native_session_id=spec.resume, model=spec.model, mode=mode, models=INFO.models, modes=INFO.modes)
        return ClaudeCodeTranslator(spec, ready)


def _permission_mode(spec: AgentSpec) -> str:
    """Always said, so that no settings file of the workspace can widen it; planning comes before all else."""
    if spec.permission_mode == "plan" or spec.mode == "plan":
        return "plan"
    return "bypassPermissions" if spec.permission_mode == "bypass" else "default"


def _environment(spec: AgentSpec) -> dict[str, str]:
    env = {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
    }
    if spec.limits.max_tokens is not None:
        env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(spec.limits.max_tokens)
    if spec.permission_mode == "bypass":
        env["IS_SANDBOX"] = "1"  # root may bypass only where this is set
    if spec.provider is None:
        return env
    if spec.provider.type != "anthropic":
        reason = f"Agent 'claude-code' cannot use a provider of type '{spec.provider.type}'. Possible: anthropic."
        raise Unprocessable(reason=reason)
    env["ANTHROPIC_BASE_URL"] = spec.provider.base_url
    env["ENABLE_TOOL_SEARCH"] = "false"  # gateways seldom know the provider's own tool search
    if spec.provider.api_key is not None:
        env["ANTHROPIC_API_KEY"] = spec.provider.api_key
    return env


def _files(spec: AgentSpec) -> dict[str, str]:
    """What would stand on the command line, which everyone on the machine can read."""
    servers = {MCP_FILE: _mcp_config(spec.mcp_servers)} if spec.mcp_servers else {}
    return servers | instructions.files_of(spec)


def _mcp_config(servers: dict[str, McpServer]) -> str:
    return msgspec.json.encode({"mcpServers": {name: _mcp_server(one) for name, one in servers.items()}}).decode()


def _mcp_server(server: McpServer) -> dict[str, object]:
    match server:
        case StdioMcpServer():
            return {"type": "stdio", "command": server.command, "args": server.args, "env": server.env}
        case HttpMcpServer():
            return {"type": "http", "url": server.url, "headers": server.headers}


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'claude-code' has no {what} '{value}'. Possible: {', '.join(possible)}.")
