"""Items of a Codex thread as universal events: what tools are called, what they answered, which files changed."""

import re
import shlex
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, assert_never

import msgspec

from ostler.agents import say
from ostler.agents.codex import thread as frames
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart
from ostler.wire.running import Draft

SPAWNING = {"started": "spawn_agent", "interacted": "send_message"}
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an item stands in the session."""

    item_id: str
    native: str
    parent_id: str | None = None
    """The call that spawned the sub-agent it belongs to."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in our words."""

    name: str
    arguments: Any
    output: str = ""
    failed: bool = False


def message(place: Place, *content: ContentPart) -> Item:
    """Something the assistant says or thinks."""
    return say.message(place.item_id, place.native, place.parent_id, content)


def call(place: Place, item: frames.ToolItem) -> Item:
    """A tool is called."""
    use = use_of(item)
    return say.call(place.item_id, use.name, msgspec.json.encode(use.arguments), place.native, place.parent_id)


def answered(place: Place, item: frames.ToolItem) -> list[Draft]:
    """A tool has answered."""
    use = use_of(item)
    return say.answered(call(place, item), use.output, failed=use.failed)


# Tool calls


def use_of(item: frames.ToolItem) -> Use:
    """Name, arguments and answer of a call."""
    return USES[type(item)](item)


def script(command: str) -> str:
    """The command without the shell that Codex puts around it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in {"-lc", "-c"} else command


def _command(item: frames.Command) -> Use:
    output = item.aggregated_output or ""
    if item.status == "declined":
        output = "The command was rejected and did not run."
    elif item.status == "failed" and not output:
        output = f"The command failed with exit code {item.exit_code}."
    arguments = {"command": script(item.command), "cwd": item.cwd}
    return Use(name="exec_command", arguments=arguments, output=output, failed=_is_bad(item.status))


def _patch(item: frames.FileChange) -> Use:
    names = ", ".join(change.kind.move_path or change.path for change in item.changes)
    match item.status:
        case "inProgress":
            output = ""
        case "completed":
            output = f"Changed {names}."
        case "declined":
            output = "The change was rejected and not made."
        case "failed":
            output = f"Could not change {names}."
        case _:
            assert_never(item.status)
    arguments = {"changes": [{"path": it.path, "kind": it.kind.type, "diff": it.diff} for it in item.changes]}
    return Use(name="apply_patch", arguments=arguments, output=output, failed=_is_bad(item.status))


def _mcp(item: frames.McpToolCall) -> Use:
    output = item.error.message if item.error else _text(item.result.content if item.result else ())
    name = f"mcp__{item.server}__{item.tool}"
    return Use(name=name, arguments=item.arguments, output=output, failed=_is_bad(item.status))


def _dynamic(item: frames.DynamicToolCall) -> Use:
    output = _text(item.content_items or ())
    return Use(name=item.tool, arguments=item.arguments, output=output, failed=_is_bad(item.status))


def _collab(item: frames.CollabCall) -> Use:
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in item.tool)
    states = {thread: state.message or state.status for thread, state in item.agents_states.items()}
    arguments = {"prompt": item.prompt, "agents": item.receiver_thread_ids}
    output = "\n".join(f"{thread}: {state}" for thread, state in states.items())
    return Use(name=name, arguments=arguments, output=output, failed=_is_bad(item.status))


def _activity(item: frames.SubAgentActivity) -> Use:
    arguments = {"agent": item.agent_path}
    return Use(name=SPAWNING.get(item.kind, item.kind), arguments=arguments, output=item.agent_thread_id)


def _search(item: frames.WebSearch) -> Use:
    return Use(name="web_search", arguments={"query": item.query})


def _look(item: frames.ImageView) -> Use:
    return Use(name="view_image", arguments={"path": item.path}, output=item.path)


def _draw(item: frames.ImageGeneration) -> Use:
    output = item.saved_path or item.status
    arguments = {"prompt": item.revised_prompt}
    return Use(name="image_generation", arguments=arguments, output=output, failed=item.status == "failed")


def _sleep(item: frames.Sleep) -> Use:
    return Use(name="sleep", arguments={"milliseconds": item.duration_ms})


USES: dict[type[frames.ThreadItem], Callable[[Any], Use]] = {
    frames.Command: _command,
    frames.FileChange: _patch,
    frames.McpToolCall: _mcp,
    frames.DynamicToolCall: _dynamic,
    frames.CollabCall: _collab,
    frames.SubAgentActivity: _activity,
    frames.WebSearch: _search,
    frames.ImageView: _look,
    frames.ImageGeneration: _draw,
    frames.Sleep: _sleep,
}


def _is_bad(status: frames.Progress) -> bool:
    return status in {"failed", "declined"}


def _text(content: tuple[dict[str, Any], ...]) -> str:
    return "\n".join(str(part.get("text", f"[{part.get('type', 'unknown')}]")) for part in content)


# Files


def changed_files(place: Place, item: frames.FileChange, cwd: str) -> list[Draft]:
    """What an applied patch did to each file."""
    return [
        draft
        for change in item.changes
        for draft in say.changed(
            change.kind.move_path or change.path, _action(change.kind), _diff(change, cwd), place.item_id
        )
    ]


def diff_of(changes: tuple[frames.Change, ...], cwd: str) -> str:
    """All changes as one unified diff."""
    return "".join(_diff(change, cwd) for change in changes)


def _action(kind: frames.ChangeKind) -> say.Action:
    match kind.type:
        case "add":
            return "created"
        case "delete":
            return "deleted"
        case "update":
            return "moved" if kind.move_path else "modified"
        case _:
            assert_never(kind.type)


def _diff(change: frames.Change, cwd: str) -> str:
    old = _shown(change.path, cwd)
    new = _shown(change.kind.move_path or change.path, cwd)
    lines = _LINES.findall(change.diff)
    match change.kind.type:
        case "add":
            head, hunks = f"--- /dev/null\n+++ b/{new}\n", _whole("+", lines, f"@@ -0,0 +1,{len(lines)} @@\n")
        case "delete":
            head, hunks = f"--- a/{old}\n+++ /dev/null\n", _whole("-", lines, f"@@ -1,{len(lines)} +0,0 @@\n")
        case "update":
            head, hunks = f"--- a/{old}\n+++ b/{new}\n", change.diff
        case _:
            assert_never(change.kind.type)
    return head + hunks + ("" if not hunks or hunks.endswith("\n") else "\n")


def _whole(sign: str, lines: list[str], head: str) -> str:
    """A file that appears or goes, as one hunk."""
    if not lines:
        return ""
    end = "" if lines[-1].endswith("\n") else "\n\\ No newline at end of file\n"
    return head + "".join(f"{sign}{line}" for line in lines) + end


def _shown(path: str, cwd: str) -> str:
    pure = PurePath(path)
    return str(pure.relative_to(cwd)) if pure.is_relative_to(cwd) else path.lstrip("/")
