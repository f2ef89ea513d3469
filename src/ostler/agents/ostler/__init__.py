"""Ostler's own agent: launches it and tells it everything in its first line."""

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

import msgspec

from ostler import __version__
from ostler.agents.adapter import (
    ANTHROPIC_KEY,
    GEMINI_KEY,
    OPENAI_KEY,
    Credential,
    Info,
    Installation,
    KeyCheck,
    Launch,
    Login,
    all_but,
)
from ostler.agents.ostler.translator import OstlerTranslator
from ostler.agents.sources import Builtin, Source
from ostler.base.errors import Unprocessable
from ostler.wire.agents import Mode, Model, SystemPrompt
from ostler.wire.own_agent import EFFORTS, KEY_VARIABLE, NODE_VARIABLE, TOOLS
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec

_AGENT = Path(__file__).parents[2] / "agent"
_PROMPT, _START = _AGENT / "prompts" / "base.md", _AGENT / "start.py"
_PACKAGES = (
    *("-X", f"packages={Path(msgspec.__file__).parents[1]}"),
    *("-X", f"python={sys.version_info.major}.{sys.version_info.minor}"),
    *("-X", f"own={os.path.realpath(sys.executable)}"),
)


@cache
def system_prompt() -> SystemPrompt:
    """The words that ship beside the agent."""
    text = _PROMPT.read_text().strip()
    return SystemPrompt(version=hashlib.sha256(text.encode()).hexdigest()[:12], text=text)


INFO = Info(
    id="ostler",
    name="Ostler",
    login=Login(account="a key of a model provider"),
    capabilities=all_but("shared_process"),
    limits=("maxTurns", "maxTokens", "temperature"),
    tools=TOOLS,
    client_tools=True,
    code_tools=True,
    system_prompt=system_prompt,
    continues_turns=True,
    modes=(
        Mode(id="default", name="Default", description="Does what the prompt says."),
        Mode(
            id="accept-edits", name="Accept edits", description="Changes files without asking; still asks for commands."
        ),
        Mode(id="plan", name="Plan", description="Looks and makes a plan; changes files once the plan is approved."),
    ),
    models=tuple(
        Model(id=name, name=title, variants=EFFORTS)
        for name, title in {
            "anthropic/claude-sonnet-4-6": "Claude Sonnet 4.6",
            "anthropic/claude-opus-4-6": "Claude Opus 4.6",
            "openai/gpt-5.5": "GPT-5.5",
            "gemini/gemini-2.5-pro": "Gemini 2.5 Pro",
            "gemini/gemini-2.5-flash": "Gemini 2.5 Flash",
            "openrouter/z-ai/glm-4.7": "GLM 4.7",
            "openrouter/moonshotai/kimi-k2-thinking": "Kimi K2 Thinking",
            "openrouter/deepseek/deepseek-v3.2": "DeepSeek 3.2",
        }.items()
    ),
)
KEYS: dict[str, tuple[str, KeyCheck | None]] = {
    "ANTHROPIC_API_KEY": ("ANTHROPIC_BASE_URL", ANTHROPIC_KEY),
    "OPENAI_API_KEY": ("OPENAI_BASE_URL", OPENAI_KEY),
    "GEMINI_API_KEY": ("GOOGLE_GEMINI_BASE_URL", GEMINI_KEY),
    "OPENROUTER_API_KEY": ("OPENROUTER_BASE_URL", None),
    "OPENAI_COMPATIBLE_API_KEY": ("OPENAI_COMPATIBLE_BASE_URL", None),
}
"""Variable of a key -> that of the address it is for, and how it is checked."""


class OstlerAdapter:
    """The agent that ships with Ostler and has a model of its own."""

    info = INFO
    sources: tuple[Source, ...] = (
        Builtin(
            program="ostler-agent",
            command=(sys.executable, "-I", "-S", "-X", "utf8", *_PACKAGES, str(_START)),
            version=__version__,
            packages=(
                "msgspec",
                "httpx",
                "httpcore",
                "h11",
                "anyio",
                "sniffio",
                "idna",
                "certifi",
                "typing_extensions",
            ),
        ),
    )
    """It ships with us."""
    credentials: tuple[Credential, ...] = tuple(
        Credential(name=name, env=(name,), check=check, address=address) for name, (address, check) in KEYS.items()
    )
    """Keys of the providers it knows."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start; what it cannot do is refused here."""
        _check("mode", spec.mode, tuple(mode.id for mode in INFO.modes))
        _check("variant", spec.variant, EFFORTS)
        node = {NODE_VARIABLE: installation.node} if installation.node else {}
        return Launch(argv=installation.command, env={**node, **_key(spec.provider, spec.model)})

    def translator(self, spec: AgentSpec) -> OstlerTranslator:
        """A fresh translator for one process."""
        return OstlerTranslator(spec)


def _key(provider: Provider | None, model: str | None) -> dict[str, str]:
    if provider is None:
        return {}
    if model is None:
        raise Unprocessable(reason="Agent 'ostler' needs a model when the session brings its own provider.")
    return {KEY_VARIABLE: provider.api_key} if provider.api_key else {}


def _check(what: str, value: str | None, possible: tuple[str, ...]) -> None:
    if value is not None and value not in possible:
        raise Unprocessable(reason=f"Agent 'ostler' has no {what} '{value}'. Possible: {', '.join(possible)}.")
