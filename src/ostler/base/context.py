"""What a prompt carries along beside the words of the user: instructions, inputs, files, and a conversation begun
elsewhere.

It is the first part of the prompt, readable for any agent, and it can be read back: a history that came this way is
shown again, and compared with what clients send.
"""

from typing import Any, Literal

import msgspec

from ostler.wire.struct import Wire

_OPEN = "<ostler-context>"
_CLOSE = "</ostler-context>"
_EXPLAINED = (
    "What comes before this message, as JSON. Follow the instructions, use the inputs and files, and take the history "
    "as what was said so far."
)


class EarlierMessage(Wire, frozen=True, kw_only=True):
    """One message of a conversation begun elsewhere."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    parts: tuple[dict[str, Any], ...] = ()
    """The whole message as it came, if it is more than text: tool calls with their results, thoughts, files."""


class Attached(Wire, frozen=True, kw_only=True):
    """A file that came with the message: its text, or the address where it is."""

    name: str
    media_type: str
    text: str | None = None
    url: str | None = None


class Context(Wire, frozen=True, kw_only=True):
    """All that comes before the words of the user."""

    instructions: str = ""
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    files: tuple[Attached, ...] = ()
    history: tuple[EarlierMessage, ...] = ()


_decoder = msgspec.json.Decoder(Context)


def differing(instructions: str | None, known: str | None) -> str:
    """The instructions that somebody sends along with a prompt, if the session has others; empty if not."""
    return instructions if instructions is not None and instructions != known else ""


def wrapped(context: Context) -> str | None:
    """The part of a prompt that holds the context; None if it is empty."""
    if context == Context():
        return None
    text = msgspec.json.format(msgspec.json.encode(context), indent=1).decode()
    return f"{_OPEN}\n{_EXPLAINED}\n{text}\n{_CLOSE}"


def unwrapped(text: str) -> Context | None:
    """The context in a part of a prompt; None for the words of a user."""
    if not (text.startswith(_OPEN) and text.endswith(_CLOSE)):
        return None
    try:
        return _decoder.decode(text[len(_OPEN) : -len(_CLOSE)].partition(_EXPLAINED)[2])
    except msgspec.DecodeError:
        return None
