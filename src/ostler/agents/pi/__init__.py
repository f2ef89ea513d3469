"""Pi: launches `pi --mode rpc` with our extensions, which add permissions, questions, a plan mode and MCP to it."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from ostler.agents.adapter import (
    ANTHROPIC_KEY,
    GEMINI_KEY,
    MISTRAL_KEY,
    OPENAI_KEY,
    Credential,
    Info,
    Installation,
    KeyCheck,
    Launch,
    Login,
    all_but,
)
from ostler.agents.pi.translator import EFFORTS, OUR_PROVIDER, PiTranslator
from ostler.agents.sources import Download, Npm, OnPath, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode
from ostler.wire.providers import Provider, ProviderType
from ostler.wire.running import AgentSpec

VERSION = "0.87.1"
ASKS = Path(__file__).with_name("hitl.ts")
MCP = Path(__file__).with_name("mcp.ts")
FOLDER = ".pi/agent"
OUR_FOLDER = ".pi/ostler"  # Pi moves session files that lie in its own
SERVERS = f"{OUR_FOLDER}/mcp.json"
INSTRUCTIONS = f"{OUR_FOLDER}/instructions.md"
KEY = "OSTLER_PROVIDER_KEY"
APIS: dict[ProviderType, tuple[str, str]] = {
    "openai": ("openai-completions", "/v1"),
    "anthropic": ("anthropic-messages", ""),
    "gemini": ("google-generative-ai", "/v1beta"),
}
"""Type of a provider -> what Pi calls its protocol, and what Pi wants after the root."""
QUIET = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
KEYS: dict[str, KeyCheck | None] = {
    "ANTHROPIC_API_KEY": ANTHROPIC_KEY,
    "OPENAI_API_KEY": OPENAI_KEY,
    "GEMINI_API_KEY": GEMINI_KEY,
    "OPENROUTER_API_KEY": None,
    "MISTRAL_API_KEY": MISTRAL_KEY,
}
INFO = Info(
    id="pi",
    name="Pi",
    login=Login(account="an account of one of its providers", files=(".pi/agent/auth.json",)),
    capabilities=all_but("session_lifecycle", "shared_process", "subagents"),
    modes=(
        Mode(id="default", name="Default", description="Does what the prompt says."),
        Mode(id="plan", name="Plan", description="Looks and makes a plan; changes files once the plan is approved."),
    ),
)
_PACKAGE = "@earendil-works/pi-coding-agent"
_ABOUT = "https://api.github.com/repos/earendil-works/pi/releases"
_UNIX = {
    "linux-x64": "80d78dd62d50049a006b981d994c61255bcc10e730b0c278d4ea0a755909764c",
    "linux-arm64": "364b4a9f8491450b27a4857d4e3c780dbaf696790821c176a873e860cbbc3b89",
    "darwin-x64": "01d8ee28d7114fec4f4eeedbb7561f790853040e9bfbdeebe79437ab66ea51f5",
    "darwin-arm64": "4f8d288b78c9768d3a4ac6f61f06cd34394b82ac17d5b42d1e44a437add401b7",
}
_WINDOWS = {"windows-x64": "aab2ba67baf8ff97a52d05b62d88e9e65a840c6ea8fa1029a28d62d210d4e5fc"}
"""SHA-256 of the release files of VERSION."""


def _release(archive: Literal["tar.gz", "zip"], program: str, checksums: dict[str, str]) -> Download:
    return Download(
        version_url=f"{_ABOUT}/latest",
        url=f"https://github.com/earendil-works/pi/releases/download/v{{version}}/pi-{{platform}}.{archive}",
        platforms={name: name for name in checksums},
        archive=archive,
        program=program,
        version=VERSION,
        checksums=checksums,
        checksum_url=f"{_ABOUT}/tags/v{{version}}",
    )


class PiAdapter:
    """The minimal coding agent of Earendil Works."""

    info = INFO
    sources: tuple[Source, ...] = (
        _release("tar.gz", "pi/pi", _UNIX),
        _release("zip", "pi/pi.exe", _WINDOWS),
        OnPath(program="pi"),
        Npm(packages={_PACKAGE: VERSION}, program=f"{_PACKAGE}/dist/bundle/cli.js", needs_node="22.19.0"),
    )
    """Releases are linked with glibc. The last npm package for Node 20 is 0.74.2, which works as well."""
    credentials: tuple[Credential, ...] = tuple(
        Credential(name=name, env=(name,), check=check) for name, check in KEYS.items()
    )
    """Keys of the providers it knows."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; what Pi cannot do is refused here."""
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        _check("variant", spec.variant, EFFORTS)
        folder = Path(spec.home) / OUR_FOLDER
        options = {
            "--mode": "rpc",
            # of our own naming, because Pi makes it anew if it is gone, where an unknown id would end Pi
            "--session": str(folder / "session.jsonl"),
            "--provider": OUR_PROVIDER if spec.provider else None,
            "--model": spec.model,
            "--thinking": spec.variant,
        }
        given = [text for option, value in options.items() if value is not None for text in (option, value)]
        extensions = [text for program in _extensions(spec) for text in ("--extension", str(folder / program.name))]
        # a repository must not bring code along that answers its own permissions
        argv = (*installation.command, *given, "--no-extensions", *extensions)
        return Launch(argv=argv, env={**_switches(spec), **_key(spec.provider)}, files=_files(spec))

    def one_shot(self, spec: AgentSpec, installation: Installation, prompt: str) -> Launch:
        """`pi --print --mode json`: without our extensions and without a session file."""
        options = {"--provider": OUR_PROVIDER if spec.provider else None, "--model": spec.model}
        given = [text for option, value in options.items() if value is not None for text in (option, value)]
        argv = (*installation.command, "--print", "--mode", "json", "--no-session", "--no-extensions", *given, prompt)
        return Launch(argv=argv, env={**_switches(spec), **_key(spec.provider)}, files=_files(spec))

    def translator(self, spec: AgentSpec) -> PiTranslator:
        """A fresh translator for one process."""
        return PiTranslator(spec)


def _extensions(spec: AgentSpec) -> tuple[Path, ...]:
    return (ASKS, MCP) if spec.mcp_servers else (ASKS,)


def _switches(spec: AgentSpec) -> dict[str, str]:
    planning = "plan" in {spec.mode, spec.permission_mode}
    gated = spec.permission_mode != "bypass"
    return {
        **QUIET,
        "PI_CODING_AGENT_DIR": str(Path(spec.home) / FOLDER),
        "OSTLER_PI_MCP": str(Path(spec.home) / SERVERS),
        "OSTLER_PI_GATE": str(int(gated)),
        "OSTLER_PI_PLAN": str(int(planning)),
        "OSTLER_PI_INSTRUCTIONS": str(Path(spec.home) / INSTRUCTIONS) if spec.instructions else "",
    }


def _key(provider: Provider | None) -> dict[str, str]:
    """The key, by reference: Pi would run one that stands in the file and begins with an exclamation mark.

    Pi 0.87 reads `$NAME` as a reference to NAME, Pi 0.74 as the name of a variable itself.
    """
    if provider is None:
        return {}
    key = provider.api_key or "none"
    return {KEY: key, f"${KEY}": key}


def _files(spec: AgentSpec) -> dict[str, str]:
    files = {f"{OUR_FOLDER}/{program.name}": program.read_text() for program in _extensions(spec)}
    if spec.mcp_servers:
        files[SERVERS] = msgspec.json.encode(spec.mcp_servers).decode()
    if spec.instructions:
        files[INSTRUCTIONS] = spec.instructions
    if spec.provider is not None:
        files[f"{FOLDER}/models.json"] = msgspec.json.encode(_providers(spec.provider, spec.model)).decode()
    return files


def _providers(provider: Provider, model: str | None) -> dict[str, Any]:
    if provider.type not in APIS:
        raise Unprocessable(reason=f"Agent 'pi' cannot use a provider of type '{provider.type}'.")
    if model is None:
        raise Unprocessable(reason="Agent 'pi' needs a model when the session brings its own provider.")
    api, suffix = APIS[provider.type]
    described = {
        "id": model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": 200_000,
        "maxTokens": 32_000,
    }
    base_url = provider.base_url.rstrip("/") + suffix
    return {"providers": {OUR_PROVIDER: {"baseUrl": base_url, "api": api, "apiKey": f"${KEY}", "models": [described]}}}


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'pi' has no {what} '{value}'. Possible: {', '.join(possible)}.")
