"""Turns the parts a client sends into the parts of a prompt; what it sends as data become files of the server."""

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import assert_never

from ostler.base.errors import InvalidRequest, StoreUnavailable, Unprocessable
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.server.objects.protocol import Objects
from ostler.wire.parts import (
    AttachedFile,
    FileInput,
    FileRefPart,
    ImageInput,
    ImagePart,
    InputPart,
    PromptPart,
    TextInput,
    TextPart,
)

log = Log(__name__)
_ROOT = "attachments"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 2.0
_ODD = re.compile(r"[^\w.,+@() -]+")
_LONGEST_NAME = 120


class SessionAttachments:
    """The images and files that clients sent to one session, which agents get as bytes, and pictures its agent made."""

    def __init__(self, objects: Objects, folder: PurePath, session_id: str) -> None:
        self._objects = objects
        self._folder = folder
        self._session = session_id

    @property
    def place(self) -> str:
        """What their paths begin with."""
        return str(self._folder / _ROOT / self._session)

    def add(self, name: str, content: bytes) -> str:
        """Keep what was sent; gives the path that it is known by."""
        self._objects.put(f"{_ROOT}/{self._session}/{name}", content)
        return f"{self.place}/{name}"

    async def keep(self, images: Mapping[str, bytes]) -> dict[str, str]:
        """Keep pictures that the agent made; while the disk is full it simply waits. Gives their paths."""
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                return await asyncio.to_thread(self._stored_pictures, images)
            except StoreUnavailable as error:
                log.error("session.picture_failed", session_id=self._session, reason=str(error))
                await asyncio.sleep(next(pauses))

    def _stored_pictures(self, images: Mapping[str, bytes]) -> dict[str, str]:
        return {path: self.add(f"pictures/{_named_by_content(path, data)}", data) for path, data in images.items()}

    def read(self, path: str) -> bytes | None:
        """What is in it; None if it is gone, or none of these.

        Its path says which it is, whatever the state folder of the server that took it.
        """
        *_, root, session, batch, name = ("", "", "", "", *PurePath(path).parts)
        if (root, session) != (_ROOT, self._session) or ".." in {batch, name}:
            return None
        return self._objects.get(f"{_ROOT}/{session}/{batch}/{name}")

    async def shown(self, parts: Iterable[PromptPart]) -> dict[str, bytes]:
        """What is in those of them that are in these parts, for a runner that does not see our disk."""
        paths = dict.fromkeys(part.path for part in parts if isinstance(part, ImagePart | FileRefPart))
        return await asyncio.to_thread(self._contents, paths) if paths else {}

    def _contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: content for path in paths if (content := self.read(path)) is not None}

    def remove(self) -> None:
        """Nobody needs them any more."""
        self._objects.remove(f"{_ROOT}/{self._session}")


class Attachments:
    """All that clients sent with prompts: data of the servers' own, with a folder for each session."""

    def __init__(self, objects: Objects, folder: PurePath) -> None:
        """`folder` is what their paths begin with."""
        self._objects = objects
        self._folder = folder

    def of(self, session_id: str) -> SessionAttachments:
        """Those of one session."""
        return SessionAttachments(self._objects, self._folder, session_id)

    def sessions(self) -> set[str]:
        """The sessions that have some."""
        return {name for name in self._objects.folders(_ROOT) if name.startswith("ses_")}

    def remove(self, sessions: set[str]) -> None:
        """Remove what an earlier server left of sessions that it had just deleted."""
        for session_id in sessions:
            self.of(session_id).remove()


def _named_by_content(path: str, content: bytes) -> str:
    """The same name when a runner delivers it again."""
    suffix = mimetypes.guess_extension(mimetypes.guess_type(path)[0] or "") or ""
    return hashlib.sha256(content).hexdigest() + suffix


def named_files(parts: Iterable[InputPart]) -> dict[int, str]:
    """The paths of files that lie where the agent works, by the place of their part."""
    return {index: path for index, part in enumerate(parts) if (path := _named_file(part)) is not None}


def _named_file(part: InputPart) -> str | None:
    match part:
        case FileInput(path=path) | ImageInput(path=path, data=None):
            return path
        case _:
            return None


def missing_files(missing: dict[int, str]) -> Unprocessable:
    """What to tell who names files that are not there."""
    errors = {f"parts[{index}].path": ["no such file that may be named"] for index in missing}
    named = ", ".join(f"'{path}'" for path in missing.values())
    where = "in the folder of the session, or in one that repository_folders allows"
    return Unprocessable(reason=f"There is no file {named} {where}, on the machine of the agent.", errors=errors)


def prompt_parts(
    message: str | None, parts: Sequence[InputPart] | None, attachments: SessionAttachments
) -> list[PromptPart]:
    """Check a message and keep what was sent with it."""
    if (message is None) == (parts is None):
        errors = {"message": ["give either message or parts"]}
        raise InvalidRequest(reason="A prompt needs `message` or `parts`, and not both.", errors=errors)
    given = parts if parts is not None else (TextInput(text=message or ""),)
    if not any(not isinstance(part, TextInput) or part.text.strip() for part in given):
        field = "message" if parts is None else "parts"
        raise InvalidRequest(reason="The prompt is empty.", errors={field: ["must not be empty"]})
    batch = new_id("att")
    return [_stored(part, index, batch, attachments) for index, part in enumerate(given)]


def _stored(part: InputPart, index: int, batch: str, attachments: SessionAttachments) -> PromptPart:
    match part:
        case TextInput(text=text):
            return TextPart(text=text)
        case FileInput(path=path):
            return FileRefPart(path=path, action="read")
        case ImageInput(path=str() as path, data=None):
            return ImagePart(path=path, mime=part.mime or mimetypes.guess_type(path)[0])
        case ImageInput(data=str() as data, path=None):
            content, mime = _decoded(data, index, "image"), part.mime or "image/png"
            name = _picture_name(part.name, mime, index)
            return ImagePart(path=attachments.add(f"{batch}.{index}/{name}", content), mime=mime)
        case AttachedFile(name=name, data=data):
            content = _decoded(data, index, "file")
            return FileRefPart(path=attachments.add(f"{batch}.{index}/{_plain(name)}", content), action="read")
        case ImageInput():
            errors = {f"parts[{index}]": ["give either data or path"]}
            raise InvalidRequest(reason="An image needs `data` or `path`, and not both.", errors=errors)
        case _:
            assert_never(part)


def _picture_name(name: str | None, mime: str, index: int) -> str:
    """The name that it came with, if that is one of such a picture."""
    suffix = mimetypes.guess_extension(mime) if mime.startswith("image/") else None
    if suffix is None:
        errors = {f"parts[{index}].mime": [f"'{mime}' is not an image type"]}
        raise Unprocessable(reason=f"'{mime}' is not a known image type, such as image/png.", errors=errors)
    is_fitting = name is not None and mimetypes.guess_type(name)[0] == mime
    return _plain(name) if name is not None and is_fitting else f"{index}{suffix}"


def _decoded(data: str, index: int, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:  # also for letters that base64 does not have
        errors = {f"parts[{index}].data": [f"is not base64: {error}"]}
        raise InvalidRequest(reason=f"The {what}'s data is not valid base64.", errors=errors) from error


def _plain(name: str) -> str:
    """A name that is one everywhere: no folders, nothing odd, not hidden."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return _ODD.sub("_", last).lstrip(".")[-_LONGEST_NAME:].strip() or "file"
