"""The words that all translators share: what an agent says and does, as drafts. Nothing here keeps state.

A translator finds out what a frame means and says it with these: an item is `opened`, has `grown` and is `closed`;
a `call` is `answered`; a file has `changed`; people get a `notice`, or hear of a `failure`.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from mimetypes import guess_extension, guess_type
from pathlib import PurePath
from typing import Any, Literal, TypeVar, assert_never

import msgspec

from ostler.agents.adapter import Unreadable
from ostler.wire.events import (
    ErrorData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    NoticeData,
    TerminalOutputData,
)
from ostler.wire.items import Item, ItemStatus, PlanEntry, PlanUpdatedData
from ostler.wire.parts import (
    ContentPart,
    FileRefPart,
    ImagePart,
    PromptPart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from ostler.wire.running import Draft, Prompt
from ostler.wire.workspace_events import ArtifactCreatedData

T = TypeVar("T")
Action = Literal["created", "modified", "deleted", "moved"]
_DOCUMENTS = frozenset({".md", ".txt", ".rst", ".html", ".pdf"})
_STEPS: dict[str, Literal["in_progress", "completed"]] = {"in_progress": "in_progress", "completed": "completed"}
_MOST_SHOWN = 200
_PRIORITIES: dict[str | None, Literal["high", "medium", "low"]] = {"high": "high", "medium": "medium", "low": "low"}


# Items


def opened(item: Item) -> Draft:
    """The item begins."""
    return Draft("item.started", ItemStartedData(item=item))


def grown(item_id: str, delta: ContentPart, native: str | None = None) -> Draft:
    """The item grows."""
    return Draft("item.delta", ItemDeltaData(item_id=item_id, delta=delta, native_item_id=native))


def closed(item: Item, status: ItemStatus | None = None) -> Draft:
    """The item is final; without a status it has its last one already."""
    whole = item if status is None else msgspec.structs.replace(item, status=status)
    return Draft("item.completed", ItemCompletedData(item=whole))


def message(
    item_id: str,
    native: str | None = None,
    parent_id: str | None = None,
    content: Sequence[ContentPart] = (),
    status: ItemStatus = "in_progress",
) -> Item:
    """Something the assistant says or thinks."""
    return Item(
        item_id=item_id,
        kind="message",
        role="assistant",
        status=status,
        content=tuple(content),
        native_item_id=native,
        parent_id=parent_id,
    )


def thought(text: str) -> ReasoningPart:
    """What the model thinks, for everybody to see."""
    return ReasoningPart(text=text, visibility="public")


def pictured(shown: Item, content: bytes, kind: str) -> Draft:
    """The assistant shows a picture, in a message of its own."""
    path = f"picture{guess_extension(kind) or ''}"
    draft = closed(msgspec.structs.replace(shown, content=(ImagePart(path=path, mime=kind),)), "completed")
    draft.images = {path: content}
    return draft


# Tools


def call(
    item_id: str,
    name: str,
    arguments: str | bytes | msgspec.Raw,
    call_id: str,
    parent_id: str | None = None,
    native: str | None = None,
) -> Item:
    """A tool is called, with arguments in JSON; `native` only where the agent's item has another id than its call."""
    text = arguments if isinstance(arguments, str) else bytes(arguments).decode()
    return Item(
        item_id=item_id,
        kind="tool_call",
        role="assistant",
        status="in_progress",
        content=(ToolCallPart(name=name, arguments=text, call_id=call_id),),
        native_item_id=native or call_id,
        parent_id=parent_id,
    )


def result(called: Item) -> Item:
    """The result of a call, while it is not known."""
    return Item(
        item_id=f"{called.item_id}_result",
        kind="tool_result",
        role="tool",
        status="in_progress",
        content=(),
        native_item_id=called.native_item_id,
        parent_id=called.item_id,
    )


def answered(called: Item, output: str, *, failed: bool) -> list[Draft]:
    """The call is over and has its result."""
    status: ItemStatus = "failed" if failed else "completed"
    begun = result(called)
    part = ToolResultPart(call_id=use_of(called).call_id, output=output)
    whole = msgspec.structs.replace(begun, content=(part,), status=status)
    # no agent says that a result begins
    began = Draft("item.started", ItemStartedData(item=begun), source="daemon", synthetic=True)
    return [closed(called, status), began, closed(whole)]


def use_of(called: Item) -> ToolCallPart:
    """What is called, and with what."""
    return next(part for part in called.content if isinstance(part, ToolCallPart))


def printed(text: str, item_id: str | None, stream: Literal["stdout", "stderr"] = "stdout") -> Draft:
    """A command prints something."""
    return Draft("terminal.output", TerminalOutputData(stream=stream, data=text, item_id=item_id))


# Files


def changed(
    path: str, action: Action, diff: str | None, item_id: str | None, how: Literal["write", "edit"] | None = None
) -> list[Draft]:
    """A file is another one now; whatever is still there is worth showing."""
    change = Draft("file.changed", FileChangedData(path=path, action=action, diff=diff, item_id=item_id))
    if action == "deleted":
        return [change]
    kind = "document" if PurePath(path).suffix.lower() in _DOCUMENTS else "code"
    made = how or ("write" if action == "created" else "edit")
    artifact = ArtifactCreatedData(path=path, action=made, artifact_type=kind, item_id=item_id)
    return [change, Draft("artifact.created", artifact)]


def diff_of(path: str, before: str, after: str, target: str | None = None) -> str:
    """Two texts of a file as a unified diff; a file without a text before was not there."""
    source = path if before else "/dev/null"
    return "\n".join([*unified_diff(before.splitlines(), after.splitlines(), source, target or path, lineterm=""), ""])


# The session


def notice(text: str, code: str | None, severity: Literal["info", "warning", "error"] = "warning") -> Draft:
    """Something that people should know, although the session goes on."""
    return Draft("notice", NoticeData(severity=severity, message=text, code=code))


def text_of(prompt: Prompt) -> str:
    """What somebody wrote, without what is attached."""
    return "\n".join(part.text for part in prompt.parts if isinstance(part, TextPart))


def unheard(text: str) -> Draft:
    """A message within a turn that an interrupt took back."""
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    message = f'The turn was interrupted before the agent read "{shown}". Send it again if you still want it.'
    return notice(message, "unheard", "info")


def failure(text: str, code: str, details: dict[str, Any] | None = None) -> Draft:
    """Something went wrong."""
    return Draft("error", ErrorData(message=text, code=code, details=details))


def time_of(seconds: float | None) -> str | None:
    """Seconds since 1970 as our events tell times; None for what is no time."""
    try:
        time = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def step(content: str, status: str, priority: str | None = None) -> PlanEntry:
    """One step of a plan; words that we do not know say nothing."""
    return PlanEntry(content=content, status=_STEPS.get(status, "pending"), priority=_PRIORITIES.get(priority))


def plan(steps: Iterable[PlanEntry]) -> Draft:
    """All that the agent wants to do."""
    return Draft("plan.updated", PlanUpdatedData(entries=tuple(steps)))


# What people say


def image(prompt: Prompt, part: ImagePart) -> tuple[str, str]:
    """Kind and content, in base64, of an image of a prompt."""
    kind, content = image_content(prompt, part)
    return kind, b64encode(content).decode()


def image_content(prompt: Prompt, part: ImagePart) -> tuple[str, bytes]:
    """Kind and content of an image of a prompt."""
    return part.mime or guess_type(part.path)[0] or "image/png", prompt.images[part.path]


def blocks(prompt: Prompt) -> list[dict[str, Any]]:
    """A prompt as Anthropic's messages have it."""
    return [_block(prompt, part) for part in prompt.parts]


def _block(prompt: Prompt, part: PromptPart) -> dict[str, Any]:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case FileRefPart(path=path):
            return {"type": "text", "text": f"Attached file: {path}"}
        case ImagePart():
            kind, data = image(prompt, part)
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case _:
            assert_never(part)


# Frames


def unreadable(error: Exception, place: str = "$") -> Unreadable:
    """What is wrong with a frame, and where below `place`."""
    reason, _, location = str(error).partition(" - at `")
    return Unreadable(reason, place + location.removesuffix("`").removeprefix("$"))


def read(data: bytes | str | msgspec.Raw, kind: type[T] | msgspec.json.Decoder[T], place: str = "$") -> T:
    """A frame, or a part of one, as what it should be; or Unreadable."""
    try:
        return kind.decode(data) if isinstance(kind, msgspec.json.Decoder) else msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(error, place) from error
