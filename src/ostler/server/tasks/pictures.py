"""Pictures that a session shows: those of its prompts, and files of the folder that its agent works in."""

import asyncio
from typing import NamedTuple

from ostler.base.errors import Unprocessable
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.session import SessionCore
from ostler.server.tasks.folders import named_by, place_of

LARGEST = 32 * 2**20
_PIECE = 2**20
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
"""How files of each kind begin; none of them can hold a program for the browser."""


class Picture(NamedTuple):
    """A picture whole."""

    media_type: str
    content: bytes


async def picture_of(session: SessionCore, workspaces: Workspaces, path: str) -> Picture:
    """The picture of that name; what is in the file decides whether it is one, not its name."""
    content = await asyncio.to_thread(session.attachments.read, path)
    if content is None:
        content = await _in_folder(session, workspaces, path)
    if len(content) > LARGEST:
        raise _refused(path, f"is larger than {LARGEST} bytes")
    media_type = kind_of(content)
    if media_type is None:
        raise _refused(path, "is not a PNG, JPEG, GIF, WebP or BMP file")
    return Picture(media_type, content)


def kind_of(content: bytes) -> str | None:
    """The media type of a picture, by how it begins."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if content.startswith(beginning)), None)


async def _in_folder(session: SessionCore, workspaces: Workspaces, path: str) -> bytes:
    place, named = place_of(session), await named_by(session, workspaces, path)
    content = bytearray()
    while len(content) <= LARGEST:
        piece = await workspaces.files.read(place, named, offset=len(content), length=_PIECE)
        content += piece.data
        if not piece.data or len(content) >= piece.size:
            break
    return bytes(content)


def _refused(path: str, why: str) -> Unprocessable:
    return Unprocessable(reason=f"The file '{path}' cannot be shown: it {why}.", errors={"path": [why]})
