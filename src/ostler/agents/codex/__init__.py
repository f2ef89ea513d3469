"""Codex: launches `codex app-server` and tells it about models, providers and MCP servers in its config file."""

import re
from typing import Any, assert_never

import msgspec

from ostler.agents.adapter import OPENAI_KEY, Credential, Info, Installation, Launch, Login, all_but
from ostler.agents.codex.login import CodexLogin
from ostler.agents.codex.translator import CodexTranslator
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode, Model
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.running import AgentSpec

VERSION = "0.166.0"
EFFORTS = ("low", "medium", "high", "xhigh", "max", "ultra")
KEY_VARIABLE = "OSTLER_PROVIDER_KEY"
OWN_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
OPENAI = "https://api.openai.com/v1"
RETRIES = {"request_max_retries": 3, "stream_max_retries": 3}
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")

INFO = Info(
    id="codex",
    name="Codex",
    login=Login(
        account="a ChatGPT account",
        files=(".codex/auth.json",),
        talk=CodexLogin,
        status=("login", "status"),
    ),
    capabilities=all_but("shared_process"),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
    },
    modes=(
        Mode(id="default", name="Default", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Explores, asks and proposes a plan before it changes anything."),
    ),
    models=(
        Model(id="gpt-6.1-sol", name="GPT-6.1-Sol", variants=EFFORTS),
        Model(id="gpt-6-astra", name="GPT-6-Astra", variants=EFFORTS),
        Model(id="gpt-6-luna", name="GPT-6-Luna", variants=EFFORTS[:5]),
        Model(id="gpt-5.5", name="GPT-5.5", variants=EFFORTS[:4]),
    ),
)
"""Its models change often: what a running Codex tells replaces these."""

SOURCES: tuple[Source, ...] = (
    Download(
        version_url="https://api.github.com/repos/openai/codex/releases/latest",
        url="https://github.com/openai/codex/releases/download/rust-v{version}/codex-{platform}.tar.gz",
        platforms={
            "linux-x64": "x86_64-unknown-linux-musl",
            "linux-x64-musl": "x86_64-unknown-linux-musl",
            "linux-arm64": "aarch64-unknown-linux-musl",
            "darwin-arm64": "aarch64-apple-darwin",
            "darwin-x64": "x86_64-apple-darwin",
        },
        archive="tar.gz",
        program="codex-{platform}",
        checksum_url="https://api.github.com/repos/openai/codex/releases/tags/rust-v{version}",
    ),
    OnPath(program="codex"),
    Npm(
        packages={"@openai/codex": VERSION},
        program="@openai/codex-{platform}/vendor/*/bin/codex",
        platforms={"linux-x64-musl": "linux-x64"},
    ),
)


_LOGINS = frozenset({*OWN_KEYS, "CODEX_HOME"})
"""Variables by which a session without a provider can get to a model, if its home has no login."""


class CodexAdapter:
    """OpenAI's agent."""

    info = INFO
    sources: tuple[Source, ...] = SOURCES
    """The npm packages hold the same static binaries as the releases."""
    credentials: tuple[Credential, ...] = (
        Credential(
            name="OPENAI_API_KEY",
            env=OWN_KEYS,
            files=((".codex/auth.json", "OPENAI_API_KEY"),),
            check=OPENAI_KEY,
        ),
    )
    """An API key; a ChatGPT login is no variable, but a file that sessions share."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; everything Codex should know stands in the config file of its own home."""
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        _check("variant", spec.variant, _variants(spec.model))
        env = {"CODEX_HOME": f"{spec.home}/.codex"}
        if spec.provider and spec.provider.api_key:
            env[KEY_VARIABLE] = spec.provider.api_key
        config = "".join(f"{name} = {_toml(value)}\n" for name, value in _config(spec).items())
        return Launch(argv=(*installation.command, "app-server"), env=env, files={".codex/config.toml": config})

    def translator(self, spec: AgentSpec) -> CodexTranslator:
        """A fresh translator for one process."""
        has_login = spec.provider is not None or spec.shared_login is not None or not _LOGINS.isdisjoint(spec.env)
        return CodexTranslator(spec, has_login=has_login)


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'codex' has no {what} '{value}'. Possible: {', '.join(possible)}.")


def _variants(model: str | None) -> tuple[str, ...]:
    """The list of models is open, so a model we do not know may have any effort."""
    return next((known.variants for known in INFO.models if known.id == model), EFFORTS)


def _config(spec: AgentSpec) -> dict[str, Any]:
    return {
        **({"model_reasoning_effort": spec.variant} if spec.variant else {}),
        **_provider(spec),
        "model_reasoning_summary": "auto",
        "check_for_update_on_startup": False,
        "suppress_unstable_features_warning": True,
        "analytics": {"enabled": False},
        "shell_environment_policy": {"exclude": [KEY_VARIABLE]},
        "features": {
            "default_mode_request_user_input": True,
            "goals": False,  # a goal begins turns that nobody prompted
            "plugins": False,  # their marketplace would be fetched into the home of every session
            "unbounded_connection_retries": False,
        },
        "mcp_servers": {name: _mcp_server(name, server) for name, server in spec.mcp_servers.items()},
    }


def _provider(spec: AgentSpec) -> dict[str, Any]:
    """Its own key in the client's variables is enough: the app server does not look there by itself."""
    provider = spec.provider
    if provider is None:
        own = next((name for name in OWN_KEYS if name in spec.env), None)
        return {} if own is None else _named_provider(spec.env.get("OPENAI_BASE_URL", OPENAI), own)
    if provider.type != "openai":
        raise Unprocessable(reason=f"Agent 'codex' cannot use a provider of type '{provider.type}'. Possible: openai.")
    return _named_provider(f"{provider.base_url.rstrip('/')}/v1", KEY_VARIABLE if provider.api_key else None)


def _named_provider(base_url: str, key: str | None) -> dict[str, Any]:
    provider = {"name": "OpenAI", "base_url": base_url, "wire_api": "responses", **RETRIES}
    if key is not None:
        provider["env_key"] = key
    return {"model_provider": "ostler", "model_providers": {"ostler": provider}}


def _mcp_server(name: str, server: McpServer) -> dict[str, Any]:
    if not _SERVER_NAME.fullmatch(name):
        reason = f"Agent 'codex' cannot use an MCP server named '{name}'. Use letters, digits, '-' and '_'."
        raise Unprocessable(reason=reason)
    match server:
        case StdioMcpServer():
            return {"command": server.command, "args": server.args, "env": server.env}
        case HttpMcpServer():
            return {"url": server.url, "http_headers": server.headers}
        case _:
            assert_never(server)


def _toml(value: Any) -> str:
    """A value in TOML, whose strings, numbers and booleans are those of JSON, but for one character."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_toml(name)} = {_toml(held)}" for name, held in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case _:
            return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
