"""Claude Code."""

from ostler.agents.claude_code import ClaudeCodeAdapter
from tests.conformance.driver import Row

ROW = Row(ClaudeCodeAdapter(), provider="anthropic", model=None)
