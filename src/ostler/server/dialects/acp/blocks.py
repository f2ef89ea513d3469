"""Small pieces of the protocol: content blocks, tool kinds and titles, and diffs."""

import re
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, TextPart, ToolCallPart

Json = dict[str, Any]
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_KINDS = {
    "execute": {"bash", "shell", "exec", "execute", "run", "command", "terminal", "sandbox"},
    "edit": {"write", "edit", "patch", "create", "replace", "apply"},
    "delete": {"delete", "remove", "rm"},
    "move": {"move", "rename", "mv"},
    "search": {"grep", "search", "glob", "find", "ls", "list"},
    "fetch": {"fetch", "web", "http", "browse", "url"},
    "read": {"read", "view", "cat", "open"},
    "think": {"think", "plan", "todo"},
}
_TELLING = ("command", "path", "file_path", "filePath", "pattern", "query", "url")
_TITLE_LENGTH = 100
_HUNK = re.compile(r"^@@ .*$", re.MULTILINE)


def text_block(text: str) -> Json:
    """Plain text."""
    return {"type": "text", "text": text}


def text_content(text: str) -> Json:
    """Plain text as the content of a tool call."""
    return {"type": "content", "content": text_block(text)}


def block_of(part: ContentPart) -> Json | None:
    """A piece of a person's prompt."""
    match part:
        case TextPart(text=text):
            return text_block(text)
        case ImagePart(path=path) | FileRefPart(path=path):
            return {"type": "resource_link", "uri": f"file://{path}", "name": PurePosixPath(path).name}
        case _:
            return None


def arguments_of(call: ToolCallPart) -> Any:
    """What a tool was called with; the text itself if it is not JSON."""
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return call.arguments


def kind_of(name: str) -> str:
    """What sort of tool this is, judged by its name."""
    words = [word.lower() for word in _WORDS.findall(name)]
    return next((kind for word in words for kind, known in _KINDS.items() if word in known), "other")


def title_of(name: str, arguments: Any) -> str:
    """The tool's name and the argument that tells most."""
    given = arguments if isinstance(arguments, dict) else {}
    detail = next((given[field] for field in _TELLING if isinstance(given.get(field), str)), "")
    title = " ".join(f"{name} {detail}".split())
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


def diffs_of(path: str, diff: str) -> list[Json]:
    """A unified diff as before and after of each place it touches."""
    created = diff.startswith("--- /dev/null")
    hunks = [_sides(hunk) for hunk in _HUNK.split(diff)[1:]]
    return [{"type": "diff", "path": path, "oldText": None if created else old, "newText": new} for old, new in hunks]


def _sides(hunk: str) -> tuple[str, str]:
    lines = [line for line in hunk.removeprefix("\n").splitlines(keepends=True) if not line.startswith("\\")]
    old = "".join(line[1:] for line in lines if line[:1] in {" ", "-"})
    new = "".join(line[1:] for line in lines if line[:1] in {" ", "+"})
    return old, new
