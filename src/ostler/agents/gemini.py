"""Gemini CLI, over ACP."""

import msgspec

from ostler.agents.acp import AcpAdapter
from ostler.agents.acp.profile import Profile, Setup, extension
from ostler.agents.adapter import GEMINI_KEY, Credential, Login, all_but
from ostler.agents.sources import Npm, OnPath
from ostler.wire.agents import Mode, Model
from ostler.wire.running import AgentSpec

_VERTEX = frozenset({"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"})
_KEYS = frozenset({"GEMINI_API_KEY", "GOOGLE_API_KEY"})
_KEEP_OLD_CHAT = """
for chat in "$HOME"/.gemini/tmp/*/chats/session-????-??-??T??-??-"$1".jsonl; do
  [ -e "$chat" ] && mv "$chat" "${chat%-"$1".jsonl}-kept-$1.jsonl"
done
shift
exec "$@"
"""
"""Loading a session first begins a file named by the minute, which would wipe the old one if it is as young as that."""


def _auth(spec: AgentSpec) -> str:
    if _VERTEX & spec.env.keys():
        return "vertex-ai"
    by_file = spec.shared_login == "file" and _KEYS.isdisjoint(spec.env)
    return "oauth-personal" if by_file else "gemini-api-key"


def _configure(spec: AgentSpec) -> Setup:
    env = {"GEMINI_CLI_NO_RELAUNCH": "true"}
    settings = {
        "security": {"auth": {"selectedType": _auth(spec)}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True, "maxAttempts": 3},
        # with a terminal of its own the output of a command never reaches the client
        "tools": {"shell": {"enableInteractiveShell": False}},
    }
    if spec.model is not None:
        settings["model"] = {"name": spec.model}
    if spec.provider is not None:
        env["GOOGLE_GEMINI_BASE_URL"] = spec.provider.base_url
        env["GEMINI_API_KEY"] = spec.provider.api_key or "none"
    before = () if spec.resume is None else ("/bin/sh", "-c", _KEEP_OLD_CHAT, "sh", spec.resume[:8])
    files = {".gemini/settings.json": msgspec.json.encode(settings).decode()}
    return Setup(before=before, env=env, files=files | extension(".gemini", "gemini-extension.json", spec))


GEMINI = Profile(
    id="gemini",
    name="Gemini CLI",
    capabilities=all_but(
        "command_execution", "plan_mode", "questions", "shared_process", "steering", "subagents", "variants"
    ),
    unconverted={
        "shared_process": "one process can serve many sessions; Ostler gives each session its own",
        "plan_mode": "it has a plan mode, but asks nobody to approve the plan",
    },
    sources=(
        OnPath(program="gemini"),
        Npm(
            packages={"@google/gemini-cli": "0.61.0"},
            program="@google/gemini-cli/bundle/gemini.js",
            needs_node="20",
        ),
    ),
    args=("--acp", "--skip-trust"),
    credentials=(
        Credential(name="GEMINI_API_KEY", env=("GEMINI_API_KEY",), check=GEMINI_KEY),
        Credential(name="GOOGLE_API_KEY", env=("GOOGLE_API_KEY",)),
    ),
    login=Login(account="a Google account", files=(".gemini/oauth_creds.json",)),
    unusable_logins=("vertex-ai",),
    providers=("gemini",),
    configure=_configure,
    permission_modes={"default": "default", "plan": "plan", "bypass": "yolo"},
    modes=(
        Mode(id="default", name="Default", description="Asks before it changes files or runs commands."),
        Mode(id="autoEdit", name="Auto edit", description="Changes files without asking."),
        Mode(id="yolo", name="YOLO", description="Does everything without asking."),
        Mode(id="plan", name="Plan", description="Looks and plans, but changes nothing."),
    ),
    models=(
        Model(id="auto", name="Auto"),
        Model(id="gemini-2.5-pro", name="Gemini 2.5 Pro"),
    ),
    model_at_start=True,
    instructions_at_start=True,
    id_separator="__",
    mode_marker="[MODE_UPDATE] ",
    late_history=True,
)
ADAPTER = AcpAdapter(GEMINI)
