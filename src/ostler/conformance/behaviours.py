"""The manifest: every behaviour the suite holds agents to, with its source and the capability it needs."""

from typing import Literal

import msgspec

from ostler.wire.agents import Capabilities

Capability = Literal[
    "command_execution",
    "error_events",
    "file_attachments",
    "file_changes",
    "images",
    "item_started",
    "mcp_tools",
    "permissions",
    "plan_mode",
    "questions",
    "reasoning",
    "resume",
    "session_lifecycle",
    "shared_process",
    "status",
    "steering",
    "streaming_deltas",
    "subagents",
    "text_messages",
    "tool_calls",
    "tool_results",
    "variants",
]


REQUIRED: frozenset[Capability] = frozenset(
    {"error_events", "item_started", "permissions", "resume", "text_messages", "tool_calls", "tool_results"}
)
"""What every agent of the table must have; all else is optional."""


class Behaviour(msgspec.Struct, frozen=True):
    """One thing an agent does through Ostler; a case claims it by its id."""

    id: str
    sentence: str
    source: str
    capability: Capability


BEHAVIOURS: tuple[Behaviour, ...] = (
    Behaviour("text", "The assistant's text arrives whole and the turn completes once.", "S2-38", "text_messages"),
    Behaviour("turns", "A second prompt on the same process knows the first.", "S3-26", "text_messages"),
    Behaviour("deltas", "Text arrives in several deltas before the item completes.", "S2-38", "streaming_deltas"),
    Behaviour("item.started", "Every item starts before it grows or completes.", "S2-38", "item_started"),
    Behaviour("reasoning", "What the model thinks arrives as reasoning.", "S2-43", "reasoning"),
    Behaviour("tool.call", "A tool call arrives with its name and arguments.", "S2-43", "tool_calls"),
    Behaviour("tool.result", "Its result arrives with the output, tied to the call.", "S2-43", "tool_results"),
    Behaviour("tool.failed", "A command that fails is marked as failed or shows its error.", "S2-42", "tool_results"),
    Behaviour("command.output", "Output of a command arrives while it runs.", "S2-32", "command_execution"),
    Behaviour("file.write", "A written file exists and is announced with its path.", "S2-32", "file_changes"),
    Behaviour("file.edit", "An edit is announced with a diff.", "S2-43", "file_changes"),
    Behaviour("permission.allow", "An allowed action is done.", "S2-39", "permissions"),
    Behaviour(
        "permission.reject", "A rejected action is not done and the reason reaches the model.", "S3-17", "permissions"
    ),
    Behaviour("permission.bypass", "With bypass nobody is asked.", "S3-13", "permissions"),
    Behaviour(
        "question", "A question arrives with its options and the answer reaches the model.", "S2-40", "questions"
    ),
    Behaviour("question.reject", "A declined question does not hang the turn.", "S3-16", "questions"),
    Behaviour("plan.approve", "In plan mode the plan is a question; approving it goes on.", "S3-18", "plan_mode"),
    Behaviour("image", "An image reaches the model.", "S2-32", "images"),
    Behaviour("attachment", "An attached file's path or content reaches the model.", "S2-32", "file_attachments"),
    Behaviour("mcp", "A tool of a session's own MCP server is called.", "S2-32", "mcp_tools"),
    Behaviour("variant", "The chosen effort reaches the model.", "S2-32", "variants"),
    Behaviour("steer", "A prompt sent during a turn reaches the model within that turn.", "S3-26", "steering"),
    Behaviour("subagent", "What a sub-agent says lies below the call that started it.", "S2-42", "subagents"),
    Behaviour("interrupt.text", "An interrupt during text ends the turn; the next one works.", "C10", "text_messages"),
    Behaviour("interrupt.tool", "An interrupt during a command ends the turn and the command.", "C10", "tool_calls"),
    Behaviour("interrupt.ask", "An interrupt during an ask ends the turn and resolves the ask.", "C10", "permissions"),
    Behaviour("resume", "A new process goes on with the agent's own memory.", "S3-23", "resume"),
    Behaviour("instructions", "The session's instructions reach the model in every turn.", "S0-21", "text_messages"),
    Behaviour("error.401", "Wrong credentials fail the turn with the provider's message.", "S2-41", "error_events"),
    Behaviour("error.500", "A provider that fails fails the turn, in bounded time.", "S2-41", "error_events"),
    Behaviour("error.recovers", "A failure that passes is retried and the turn completes.", "S2-41", "error_events"),
    Behaviour("usage", "Tokens are reported.", "S2-5", "status"),
)
BY_ID = {behaviour.id: behaviour for behaviour in BEHAVIOURS}
WITHOUT_BEHAVIOUR: dict[Capability, str] = {
    "session_lifecycle": "its own protocol tells about sessions; Ostler's events are the same for all",
    "shared_process": "how processes are shared is the runner's business; no event shows it",
}
"""Capabilities that no case can show, and why."""


def has(capabilities: Capabilities, behaviour: Behaviour) -> bool:
    """Whether an agent says it can do this."""
    return bool(getattr(capabilities, behaviour.capability))
