"""OpenCode's parts, tool calls, file changes and asks as items and drafts; nothing here keeps state."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import msgspec

from ostler.agents import say
from ostler.agents.opencode import frames
from ostler.wire.events import FileChangedData
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, TextPart
from ostler.wire.running import Draft

T = TypeVar("T")
SHELL_NOTE = "\n\n<shell_metadata>"
"""OpenCode adds remarks for the model to a command's output, after this."""
NO_OUTPUT = "(no output)"
_OVERLAP = 200
_CUT = "...\n\n"
"""Stands before the end of an output that is too long to be sent as a whole."""
_LIMITED = re.compile(r"\b429\b|rate.?limit|too many requests|quota", re.IGNORECASE)
_STATUS_CODES = {401: "auth", 403: "auth", 429: "rate_limit"}
_ERROR_CODES = {
    "ProviderAuthError": "auth",
    "ContextOverflowError": "context_overflow",
    "MessageOutputLengthError": "output_length",
    "ContentFilterError": "content_filter",
    "UnknownError": "agent_error",
}


def words(part: frames.Words, text: str) -> ContentPart:
    """Text of a part as content."""
    if isinstance(part, frames.Reasoning):
        return say.thought(text)
    return TextPart(text=text)


def finished(item: Item, part: frames.Words) -> Draft:
    """The text is final."""
    content = (words(part, part.text),) if part.text else ()
    return say.closed(msgspec.structs.replace(item, content=content), "completed")


# Tool calls


def call(item_id: str, parent_id: str | None, part: frames.Tool) -> Item:
    """A tool call that has begun."""
    arguments = msgspec.json.encode(part.state.input)
    return say.call(item_id, part.tool, arguments, part.call_id, parent_id, native=part.id)


def answered(made: Item, part: frames.Tool) -> list[Draft]:
    """The call is over and has its result."""
    output = part.state.error if part.state.status == "error" else part.state.output
    return say.answered(made, output, failed=_has_failed(part))


class _Shell(msgspec.Struct, frozen=True):
    """What is known about a command; `exit` is null when it was stopped."""

    output: str = ""
    exit: int | None = 0


class _Written(msgspec.Struct, frozen=True):
    filepath: str
    exists: bool = True


class _Edited(msgspec.Struct, frozen=True):
    diff: str | None = None


class _PatchedFile(msgspec.Struct, frozen=True, rename="camel"):
    file_path: str
    type: str = "update"
    patch: str | None = None
    move_path: str | None = None


class _Patched(msgspec.Struct, frozen=True):
    files: tuple[_PatchedFile, ...] = ()


class _Delegated(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str | None = None


def _metadata(part: frames.Tool, kind: type[T]) -> T | None:
    """What a tool tells beside its output; None when it is not what we know of that tool."""
    try:
        return msgspec.json.decode(part.state.metadata, type=kind)
    except msgspec.DecodeError:
        return None


def _has_failed(part: frames.Tool) -> bool:
    shell = _metadata(part, _Shell) if part.tool == "bash" else None
    return part.state.status == "error" or (shell is not None and shell.exit != 0)


def printed(part: frames.Tool) -> str | None:
    """All that a command has printed so far; None for every other tool."""
    shell = _metadata(part, _Shell) if part.tool == "bash" else None
    if shell is None:
        return None
    output = shell.output.partition(SHELL_NOTE)[0].removeprefix(_CUT)
    return "" if output == NO_OUTPUT else output


def added(before: str, now: str) -> str:
    """What is new in an output that is sent as a whole each time, or as its end when it is long."""
    if now.startswith(before):
        return now[len(before) :]
    known = before[-_OVERLAP:]
    _, found, rest = now.rpartition(known)
    return rest if found and known else ""


def child_session(part: frames.Tool) -> str | None:
    """The session of the sub-agent that a call started."""
    found = _metadata(part, _Delegated) if part.tool == "task" else None
    return found.session_id if found else None


# Files


def file_changes(part: frames.Tool, item_id: str, proposed: str | None) -> list[Draft]:
    """What a finished call did to files; `proposed` is the diff that was shown when permission was asked."""
    describe = _FILE_TOOLS.get(part.tool)
    if describe is None or part.state.status != "completed":
        return []
    return describe(part, item_id, proposed)


def _wrote(part: frames.Tool, item_id: str, proposed: str | None) -> list[Draft]:
    written = _metadata(part, _Written)
    if written is None:
        return []
    content = part.state.input.get("content")
    diff = proposed
    if diff is None and not written.exists and isinstance(content, str):
        diff = say.diff_of(written.filepath, "", content)
    return _changed(written.filepath, "modified" if written.exists else "created", diff, item_id, "write")


def _edited(part: frames.Tool, item_id: str, proposed: str | None) -> list[Draft]:
    path = part.state.input.get("filePath")
    edited = _metadata(part, _Edited)
    if not isinstance(path, str):
        return []
    return _changed(path, "modified", (edited and edited.diff) or proposed, item_id, "edit")


def _patched(part: frames.Tool, item_id: str, _: str | None) -> list[Draft]:
    actions: dict[str, say.Action] = {"add": "created", "delete": "deleted", "move": "moved"}
    patched = _metadata(part, _Patched)
    drafts: list[Draft] = []
    for file in patched.files if patched else ():
        path = file.move_path or file.file_path
        drafts += _changed(path, actions.get(file.type, "modified"), file.patch, item_id, "edit")
    return drafts


_FILE_TOOLS: dict[str, Callable[[frames.Tool, str, str | None], list[Draft]]] = {
    "write": _wrote,
    "edit": _edited,
    "apply_patch": _patched,
}


def _changed(
    path: str, action: say.Action, diff: str | None, item_id: str, how: Literal["write", "edit"]
) -> list[Draft]:
    return say.changed(path, action, diff and tidy(diff), item_id, how)


def changed_otherwise(path: str) -> Draft:
    """A file changed during a step by something else than a file tool, such as a command."""
    return Draft("file.changed", FileChangedData(path=path, action="modified"))


def tidy(diff: str) -> str:
    """A diff without the lines that OpenCode puts before its header."""
    return diff[max(0, diff.find("--- ")) :]


# The rest


def plan(todos: Sequence[frames.Todo]) -> Draft:
    """The to-do list, without what was given up."""
    return say.plan(say.step(todo.content, todo.status, todo.priority) for todo in todos if todo.status != "cancelled")


def error(error: frames.NamedError | None) -> Draft:
    """A failure with the provider's own words."""
    if error is None:
        return say.failure("OpenCode failed without a reason.", "agent_error")
    status = error.data.get("statusCode")
    code = _STATUS_CODES.get(status) if isinstance(status, int) else None
    details = {"name": error.name}
    if isinstance(status, int):
        details["status"] = str(status)
    message = str(error.data.get("message") or error.name)
    return say.failure(message, code or _ERROR_CODES.get(error.name, "provider_error"), details)


def given_up(status: frames.Status) -> Draft:
    """The provider failed too often; OpenCode tells its words but not its status."""
    code = "rate_limit" if _LIMITED.search(status.message) else "provider_error"
    return say.failure(status.message, code, {"retries": status.attempt - 1})
