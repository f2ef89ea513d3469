"""Reading, writing and editing files of the workspace."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches, unified_diff
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from ostler.agent.entries import Change
from ostler.agent.operations import Missing, ToolFailed
from ostler.agent.pictures import objection, type_of
from ostler.agent.tools.tool import CallContext, Input, Output, Tool

MOST_LINES = 2000
MOST_CHARACTERS = 50_000
SECONDS, RETRIES = 120, 2
_LONGEST_LINE = 2000
_MOST_BYTES = 20 * 2**20
_MOST_DIFFED = 500_000
_MOST_COMPARED_LINES = 5000
_Path = Annotated[
    str, msgspec.Meta(min_length=1, description="Path of the file, absolute or from the workspace's root")
]


class ReadInput(Input, frozen=True, kw_only=True):
    """What `read` takes."""

    path: _Path
    offset: Annotated[int, msgspec.Meta(ge=1, description="First line to read; 1 by default")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, description="Most lines to read; 2000 by default")] = MOST_LINES


class WriteInput(Input, frozen=True, kw_only=True):
    """What `write` takes."""

    path: _Path
    content: Annotated[str, msgspec.Meta(description="All that the file is to hold")]


class EditInput(Input, frozen=True, kw_only=True):
    """What `edit` takes."""

    path: _Path
    old_string: Annotated[str, msgspec.Meta(min_length=1, description="The text to replace, exactly as in the file")]
    new_string: Annotated[str, msgspec.Meta(description="The text to put in its place")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every occurrence; otherwise there must be one")] = (
        False
    )


# Reading


def _read(given: ReadInput, context: CallContext) -> Output:
    content = context.workspace.read(given.path, _MOST_BYTES, granted=context.granted)
    if (mime := type_of(content)) is not None:
        return _image(given.path, mime, content, context)
    if b"\0" in content[:8192]:
        raise ToolFailed(f"'{given.path}' is a binary file of {len(content)} bytes.")
    lines = content.decode(errors="replace").splitlines()
    if given.offset > max(1, len(lines)):
        raise ToolFailed(f"'{given.path}' has {len(lines)} lines; there is no line {given.offset}.")
    return Output(text=_shown(lines, given.offset, given.limit) if lines else "(the file is empty)")


def _shown(lines: Sequence[str], offset: int, limit: int) -> str:
    chosen: list[str] = []
    size = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        short = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} [line cut]"
        size += len(short) + 1
        if size > MOST_CHARACTERS:
            break
        chosen.append(short)
    last = offset - 1 + len(chosen)
    if offset == 1 and last == len(lines):
        return "\n".join(chosen)
    more = f"; go on with offset {last + 1}" if last < len(lines) else ""
    return "\n".join([*chosen, f"[lines {offset} to {last} of {len(lines)}{more}]"])


def _image(path: str, mime: str, content: bytes, context: CallContext) -> Output:
    if (why := objection(content)) is not None:
        raise ToolFailed(f"The image '{path}' cannot be shown: {why}. Make it smaller.")
    return Output(text=f"The image {path} ({mime}, {len(content)} bytes)", pictures=(context.keep(mime, content),))


# Writing


def _write(given: WriteInput, context: CallContext) -> Output:
    if (done := _done(given.path, context)) is not None:
        return done
    before = _before(given.path, context)
    path = context.workspace.relative(given.path)
    diff = diff_of(path, before, given.content)
    action: Literal["created", "modified"] = "modified" if _is_there(given.path, context) else "created"
    change = Change(path=path, action=action, operation="write", diff=diff)
    lines = len(given.content.splitlines())
    output = Output(text=f"{action.capitalize()} {path} ({lines} lines).", change=change)
    return _put(given.path, given.content.encode(errors="surrogatepass"), output, context)


def _put(path: str, content: bytes, output: Output, context: CallContext) -> Output:
    """Write a file; a process that comes after us finds out whether that was done."""
    context.claim.intend(content, msgspec.json.encode(output))
    context.workspace.write(path, content)
    return output


def _done(path: str, context: CallContext) -> Output | None:
    """What is to be answered, if an earlier process did this before it ended."""
    if not context.claim.is_begun:
        return None
    try:
        content = context.workspace.read(path, _MOST_BYTES)
    except ToolFailed:
        return None
    answer = context.claim.done(content)
    return replace(msgspec.json.decode(answer, type=Output), how="picked_up") if answer is not None else None


def _is_there(path: str, context: CallContext) -> bool:
    try:
        context.workspace.place(path)
    except Missing:
        return False
    return True


def _before(path: str, context: CallContext) -> str | None:
    """What a file holds; empty if there is none, None if it cannot be shown."""
    try:
        return context.workspace.read(path, _MOST_DIFFED).decode()
    except Missing:
        return ""
    except (ToolFailed, UnicodeDecodeError):
        return None


def _write_preview(given: WriteInput, context: CallContext) -> str | None:
    return diff_of(context.workspace.relative(given.path), _before(given.path, context), given.content)


def _edit(given: EditInput, context: CallContext) -> Output:
    if (done := _done(given.path, context)) is not None:
        return done
    before, after, count = _edited(given, context)
    path = context.workspace.relative(given.path)
    change = Change(path=path, action="modified", operation="edit", diff=diff_of(path, before, after))
    text = f"Edited {path}: {count} {'place' if count == 1 else 'places'} replaced."
    return _put(given.path, after.encode(), Output(text=text, change=change), context)


def _edited(given: EditInput, context: CallContext) -> tuple[str, str, int]:
    """The text before and after, and how often it was replaced. Raises ToolFailed."""
    old, new = given.old_string, given.new_string
    if old == new:
        raise ToolFailed("`old_string` and `new_string` are the same; nothing would change.")
    try:
        before = context.workspace.read(given.path, _MOST_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"'{given.path}' is no text in UTF-8.") from error
    if old not in before and "\r\n" in before:  # models write lines with plain ends
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = before.count(old)
    if count == 0:
        raise ToolFailed(f"`old_string` is not in '{given.path}'.{_nearest(old, before)}")
    if count > 1 and not given.replace_all:
        found = ", ".join(map(str, _lines_of(old, before)))
        where = f"`old_string` is {count} times in '{given.path}' (lines {found})."
        raise ToolFailed(f"{where} Give more of what stands around it, or set `replace_all`.")
    return before, before.replace(old, new), count


def _lines_of(text: str, whole: str, most: int = 10) -> list[int]:
    found: list[int] = []
    at = whole.find(text)
    while at >= 0 and len(found) < most:
        found.append(whole.count("\n", 0, at) + 1)
        at = whole.find(text, at + len(text))
    return found


def _nearest(old: str, whole: str) -> str:
    first = next((line for line in old.splitlines() if line.strip()), "")
    lines = whole.splitlines()[:_MOST_COMPARED_LINES]
    close = get_close_matches(first, lines, n=3, cutoff=0.6)
    shown = "".join(f"\n{lines.index(line) + 1}: {line[:200]}" for line in close)
    return f" Lines that are like its first one:{shown}" if shown else " Read the file again and copy the text exactly."


def _edit_preview(given: EditInput, context: CallContext) -> str | None:
    before, after, _ = _edited(given, context)
    return diff_of(context.workspace.relative(given.path), before, after)


def diff_of(path: str, before: str | None, after: str) -> str | None:
    """A unified diff; None where it would take too long, or nothing is known of what was there."""
    if before is None or len(before) + len(after) > _MOST_DIFFED:
        return None
    source = path if before else "/dev/null"
    lines = unified_diff(before.splitlines(), after.splitlines(), source, path, lineterm="")
    return "\n".join([*lines, ""])


async def _run_read(given: ReadInput, context: CallContext) -> Output:
    return await asyncio.to_thread(_read, given, context)


async def _run_write(given: WriteInput, context: CallContext) -> Output:
    return await asyncio.to_thread(_write, given, context)


async def _run_edit(given: EditInput, context: CallContext) -> Output:
    return await asyncio.to_thread(_edit, given, context)


READ = Tool(
    name="read",
    description=(
        "Read a file of the workspace: a text, or a PNG, JPEG, GIF or WebP image, which you will see. A text is given "
        "without line numbers, at most 2000 lines or 50,000 characters of it; what is left out is said at the end, "
        "with the offset to go on with. Very long lines are cut. Read a file before you change it. Several files can "
        "be read at the same time. Not for folders (use `find`), nor to look for something in many files (use `grep`)."
    ),
    input=ReadInput,
    run=_run_read,
    seconds=SECONDS,
    retries=RETRIES,
)
WRITE = Tool(
    name="write",
    description=(
        "Write a whole file of the workspace: a new one, or in place of what is there. Folders are made as needed. To "
        "change a part of a file use `edit`, which says less and spoils less. Give the whole content, never a "
        "placeholder for what should stay as it is."
    ),
    input=WriteInput,
    run=_run_write,
    seconds=SECONDS,
    retries=RETRIES,
    changes="files",
    preview=_write_preview,
)
EDIT = Tool(
    name="edit",
    description=(
        "Replace a text in a file of the workspace by another one. `old_string` must be in the file exactly, with all "
        "its blanks and line ends, and only once: give as many lines around it as that takes, or set `replace_all` to "
        "replace every occurrence, as for a renaming. Read the file first and copy from it."
    ),
    input=EditInput,
    run=_run_edit,
    seconds=SECONDS,
    retries=RETRIES,
    changes="files",
    preview=_edit_preview,
)
