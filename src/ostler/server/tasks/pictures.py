"""Pictures that a session shows: those of its prompts, and files of the folder that its agent works in."""

import asyncio
from pathlib import Path
from typing import NamedTuple

from ostler.base.errors import FileMissing, PathRefused, Unprocessable
from ostler.base.paths import is_file
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.live import LiveSession

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


async def picture_of(live: LiveSession, attachments: Path, workspaces: Workspaces, path: str) -> Picture:
    """The picture of that name; what is in the file decides whether it is one, not its name."""
    content = await _content(live, attachments, workspaces, path)
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


async def _content(live: LiveSession, attachments: Path, workspaces: Workspaces, path: str) -> bytes:
    made = live.shown.workspace
    if made is None:
        return await asyncio.to_thread(_read, path, Path(live.record.cwd), attachments)
    if Path(path).is_relative_to(attachments):
        return await asyncio.to_thread(_read, path, attachments)
    if Path(path).is_relative_to(made.path):
        path = str(Path(path).relative_to(made.path))
    return await _in_workspace(workspaces, made.workspace_id, path)


def _read(path: str, *folders: Path) -> bytes:
    """A file of one of these folders, the first of which relative paths are meant for; links may not lead out."""
    try:
        real = (folders[0] / path).resolve()
        is_ours = any(real.is_relative_to(folder.resolve()) for folder in folders)
    except (OSError, ValueError, RuntimeError) as error:  # a name that nobody could have
        raise FileMissing(what="file", path=path) from error
    if not is_ours:
        raise PathRefused(path=path, reason="leads out of the folder of the session")
    if not is_file(str(real)):
        raise FileMissing(what="file", path=path)
    with real.open("rb") as file:
        return file.read(LARGEST + 1)


async def _in_workspace(workspaces: Workspaces, workspace: str, path: str) -> bytes:
    content = bytearray()
    while len(content) <= LARGEST:
        piece = await workspaces.files.read(workspace, path, offset=len(content), length=_PIECE)
        content += piece.data
        if not piece.data or len(content) >= piece.size:
            break
    return bytes(content)


def _refused(path: str, why: str) -> Unprocessable:
    return Unprocessable(reason=f"The file '{path}' cannot be shown: it {why}.", errors={"path": [why]})
