"""Content parts: the pieces of an item."""

from typing import Any, Literal

from ostler.wire.struct import Request, Wire
from ostler.wire.texts import Base64


class Part(Wire, frozen=True, kw_only=True, tag_field="type"):
    """Base of all content parts."""

    @property
    def type(self) -> str:
        """The part's type as it stands on the wire."""
        return str(self.__struct_config__.tag)


class TextPart(Part, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str


class JsonPart(Part, frozen=True, kw_only=True, tag="json"):
    """Structured content."""

    json: Any


class ToolCallPart(Part, frozen=True, kw_only=True, tag="tool_call"):
    """A tool invocation; `arguments` is a JSON document as text."""

    name: str
    arguments: str
    call_id: str


class ToolResultPart(Part, frozen=True, kw_only=True, tag="tool_result"):
    """What a tool answered."""

    call_id: str
    output: str


class FileRefPart(Part, frozen=True, kw_only=True, tag="file_ref"):
    """A file that was read, written or patched; `path` is what its agent calls it, on the machine it works on."""

    path: str
    action: Literal["read", "write", "patch"]
    diff: str | None = None


class ImagePart(Part, frozen=True, kw_only=True, tag="image"):
    """An image: `path` names one that a client sent or an agent showed, or a file on the machine that it works on."""

    path: str
    mime: str | None = None


class ReasoningPart(Part, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought."""

    text: str
    visibility: Literal["public", "private"]


class StatusPart(Part, frozen=True, kw_only=True, tag="status"):
    """A short status line."""

    label: str
    detail: str | None = None


ContentPart = TextPart | JsonPart | ToolCallPart | ToolResultPart | FileRefPart | ImagePart | ReasoningPart | StatusPart


class TextInput(Request, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text of a prompt."""

    text: str


class ImageInput(Request, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image of a prompt: base64 `data`, or a `path` on the machine that the agent works on, as for a file."""

    data: Base64 | None = None
    path: str | None = None
    mime: str | None = None
    name: str | None = None
    """What the file of the data is called; a number by default."""


class FileInput(Request, frozen=True, kw_only=True, tag_field="type", tag="file_ref"):
    """A file on the machine that the agent works on, which the prompt refers to: in the session's folder, or below one
    that `repository_folders` allows."""

    path: str


class AttachedFile(Request, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file that comes with the prompt as base64 `data`; the agent finds it in its home by its name."""

    name: str
    data: Base64


InputPart = TextInput | ImageInput | FileInput | AttachedFile
PromptPart = TextPart | ImagePart | FileRefPart
