"""The table of agents: adding one is one file and one line here."""

from ostler.agents.adapter import Adapter
from ostler.agents.amp import AmpAdapter
from ostler.agents.claude_code import ClaudeCodeAdapter
from ostler.agents.codex import CodexAdapter
from ostler.agents.copilot import CopilotAdapter
from ostler.agents.gemini import ADAPTER as GEMINI
from ostler.agents.kimi import ADAPTER as KIMI
from ostler.agents.mock import MockAdapter
from ostler.agents.opencode import OpenCodeAdapter
from ostler.agents.openhands import ADAPTER as OPENHANDS
from ostler.agents.ostler import OstlerAdapter
from ostler.agents.pi import PiAdapter
from ostler.agents.qwen import ADAPTER as QWEN
from ostler.agents.vibe import ADAPTER as VIBE

ADAPTERS: tuple[Adapter, ...] = (
    MockAdapter(),
    OstlerAdapter(),
    ClaudeCodeAdapter(),
    AmpAdapter(),
    CodexAdapter(),
    CopilotAdapter(),
    OpenCodeAdapter(),
    PiAdapter(),
    GEMINI,
    QWEN,
    KIMI,
    VIBE,
    OPENHANDS,
)
