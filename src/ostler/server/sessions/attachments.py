"""Turns the parts a client sends into the parts of a prompt; images become files of the server."""

import asyncio
import base64
import mimetypes
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from ostler.base import private
from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.base.paths import is_file
from ostler.wire.parts import FileInput, FileRefPart, ImageInput, ImagePart, InputPart, PromptPart, TextInput, TextPart


def prompt_parts(message: str | None, parts: Sequence[InputPart] | None, folder: Path) -> list[PromptPart]:
    """Check a message and store its images below the folder."""
    if (message is None) == (parts is None):
        errors = {"message": ["give either message or parts"]}
        raise InvalidRequest(reason="A prompt needs `message` or `parts`, and not both.", errors=errors)
    given = parts if parts is not None else (TextInput(text=message or ""),)
    if not any(not isinstance(part, TextInput) or part.text.strip() for part in given):
        field = "message" if parts is None else "parts"
        raise InvalidRequest(reason="The prompt is empty.", errors={field: ["must not be empty"]})
    return [_stored(part, index, folder) for index, part in enumerate(given)]


def _stored(part: InputPart, index: int, folder: Path) -> PromptPart:
    match part:
        case TextInput(text=text):
            return TextPart(text=text)
        case FileInput(path=path):
            return FileRefPart(path=_existing(path, index), action="read")
        case ImageInput(path=str() as path, data=None):
            return ImagePart(path=_existing(path, index), mime=part.mime or mimetypes.guess_type(path)[0])
        case ImageInput(data=str() as data, path=None):
            return _stored_image(data, part.mime or "image/png", index, folder)
        case ImageInput():
            errors = {f"parts[{index}]": ["give either data or path"]}
            raise InvalidRequest(reason="An image needs `data` or `path`, and not both.", errors=errors)
        case _:
            assert_never(part)


def _existing(path: str, index: int) -> str:
    if not is_file(path):
        errors = {f"parts[{index}].path": ["no such file"]}
        raise Unprocessable(reason=f"There is no file '{path}' on the server's machine.", errors=errors)
    return path


def _stored_image(data: str, mime: str, index: int, folder: Path) -> ImagePart:
    suffix = mimetypes.guess_extension(mime) if mime.startswith("image/") else None
    if suffix is None:
        errors = {f"parts[{index}].mime": [f"'{mime}' is not an image type"]}
        raise Unprocessable(reason=f"'{mime}' is not a known image type, such as image/png.", errors=errors)
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:  # also for letters that base64 does not have
        errors = {f"parts[{index}].data": [f"is not base64: {error}"]}
        raise InvalidRequest(reason="The image's data is not valid base64.", errors=errors) from error
    private.make_folder(folder)
    path = folder / f"{index}{suffix}"
    private.write_file(path, content)
    return ImagePart(path=str(path), mime=mime)


async def images_of(parts: Iterable[PromptPart]) -> dict[str, bytes]:
    """What the images among them show, for a runner that does not see our disk; what is gone is left out."""
    paths = dict.fromkeys(part.path for part in parts if isinstance(part, ImagePart))
    return await asyncio.to_thread(_contents, paths) if paths else {}


def _contents(paths: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        with suppress(OSError):
            contents[path] = Path(path).read_bytes()
    return contents
