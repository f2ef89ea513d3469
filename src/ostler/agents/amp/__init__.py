"""Amp, whose threads and models live in its own service; launched behind a small bridge of ours."""

import sys
from pathlib import Path

import msgspec

from ostler.agents.adapter import Credential, Info, Installation, Launch, Login, Ready, all_but
from ostler.agents.amp.translator import AmpTranslator
from ostler.agents.instructions import files_of
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.running import AgentSpec

VERSION = "0.0.1777897475-g2324e1"
BRIDGE = Path(__file__).parents[2] / "programs" / "bridges" / "amp.py"
SETTINGS_FILE = ".ostler/amp.json"
GUIDANCE_FILE = ".config/amp/AGENTS.md"
ASK_PROGRAM = ".ostler/amp-ask"
READING_TOOLS = ("Read", "finder", "look_at", "find_thread", "read_thread", "read_mcp_resource", "skill")
_RELEASES = "https://storage.googleapis.com/amp-public-assets-prod-0/cli"
INFO = Info(
    id="amp",
    name="Amp",
    login=Login(account="an Amp account", files=(".local/share/amp/secrets.json",), command=("login",)),
    remote_memory=True,
    capabilities=all_but(
        "command_execution",  # the output of a command comes only when it is over
        "plan_mode",
        "questions",
        "shared_process",
        "steering",
        "streaming_deltas",  # messages come whole
        "subagents",
        "variants",
    ),
    unconverted={
        "steering": "its input takes messages at any time; Ostler lets them wait for the turn to end",
        "subagents": "what its sub-agents say is not in its stream",
    },
    modes=(
        Mode(id="smart", name="Smart", description="The most capable model."),
        Mode(id="deep", name="Deep", description="Thinks longer, for hard problems."),
        Mode(id="large", name="Large", description="The largest context."),
        Mode(id="rush", name="Rush", description="Faster and cheaper, for small tasks."),
    ),
)
_PLATFORMS = ("linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64")


class AmpAdapter:
    """Sourcegraph's coding agent."""

    info = INFO
    sources: tuple[Source, ...] = (
        OnPath(program="amp"),
        Download(
            version_url=f"{_RELEASES}/cli-version.txt",
            url=f"{_RELEASES}/{{version}}/amp-{{platform}}",
            platforms={name: name for name in _PLATFORMS},
            program="amp",
        ),
        Npm(
            packages={"@sourcegraph/amp": VERSION},
            program="@sourcegraph/amp/dist/main.js",
            needs_node="20",
        ),
    )
    """There already, the vendor's binary, or the last version that ran on Node."""
    credentials: tuple[Credential, ...] = (Credential(name="AMP_API_KEY", env=("AMP_API_KEY",)),)
    """The key of an Amp account."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; models are chosen by Amp, and only by mode."""
        _refuse("provider", spec.provider.type if spec.provider else None, ())
        _refuse("model", spec.model, ())
        _refuse("variant", spec.variant, ())
        _refuse("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        bridge = (sys.executable, "-I", "-S", str(BRIDGE), f"{spec.home}/{ASK_PROGRAM}", spec.resume or "")
        flags = ("--no-notifications", "--no-ide", "--settings-file", f"{spec.home}/{SETTINGS_FILE}")
        everything = ("--dangerously-allow-all",) if spec.permission_mode == "bypass" else ()
        mode = ("--mode", spec.mode) if spec.mode else ()
        return Launch(
            argv=(*bridge, *installation.command, *flags, *everything, *mode),
            env={"AMP_SKIP_UPDATE_CHECK": "1"},
            files={SETTINGS_FILE: _settings(spec)} | files_of(spec, GUIDANCE_FILE),
        )

    def translator(self, spec: AgentSpec) -> AmpTranslator:
        """A fresh translator for one process."""
        return AmpTranslator(spec, Ready(native_session_id=spec.resume, mode=spec.mode, modes=INFO.modes))


def _settings(spec: AgentSpec) -> str:
    """Reading is free; all else is asked by our program, or refused when only a plan is wanted."""
    reading = [{"tool": name, "action": "allow"} for name in READING_TOOLS]
    asking = {"tool": "*", "action": "delegate", "to": f"{spec.home}/{ASK_PROGRAM}"}
    rest = {"tool": "*", "action": "reject"} if spec.permission_mode == "plan" else asking
    servers = {name: _mcp_server(one) for name, one in spec.mcp_servers.items()}
    return msgspec.json.encode({"amp.permissions": [*reading, rest], "amp.mcpServers": servers}).decode()


def _mcp_server(server: McpServer) -> dict[str, object]:
    match server:
        case StdioMcpServer():
            return {"command": server.command, "args": server.args, "env": server.env}
        case HttpMcpServer():
            return {"url": server.url, "headers": server.headers}


def _refuse(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'amp' has no {what} '{value}'. Possible: {', '.join(possible) or 'none'}.")
