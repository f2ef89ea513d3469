"""What came with a prompt as files of the agent's home, and its images as bytes for agents that want no path."""

import asyncio
from pathlib import Path, PurePath

from msgspec.structs import replace

from ostler.base.errors import FileMissing, PathRefused, StoreUnavailable
from ostler.base.paths import is_file
from ostler.runner.runtimes.home import write_in_home
from ostler.wire.parts import FileRefPart, ImagePart
from ostler.wire.running import Prompt

_FOLDER = ".ostler/images"
_LARGEST = 32 * 2**20


async def with_images(prompt: Prompt) -> Prompt:
    """The prompt with what those of its images show that lie on this machine."""
    paths = {part.path for part in prompt.parts if isinstance(part, ImagePart)} - prompt.images.keys()
    if not paths:
        return prompt
    read = await asyncio.to_thread(lambda: {path: _read(path) for path in sorted(paths)})
    return replace(prompt, images={**prompt.images, **read})


def _read(path: str) -> bytes:
    if not is_file(path):
        raise FileMissing(what="image", path=path)
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise PathRefused(path=path, reason=f"cannot be read ({error.strerror})") from error
    if len(content) > _LARGEST:
        raise PathRefused(path=path, reason=f"is larger than {_LARGEST} bytes")
    return content


async def write_images(prompt: Prompt, home: str) -> None:
    """Write them to where `placed` says that they are."""
    if not prompt.images:
        return
    try:
        await asyncio.to_thread(write_in_home, home, dict(zip(_names(prompt), prompt.images.values(), strict=True)))
    except OSError as error:
        raise StoreUnavailable(reason=f"the agent's home: {error.strerror}") from error


def placed(prompt: Prompt, home: str) -> Prompt:
    """The prompt with the paths of these files; it depends on nothing else, so a replay says the same."""
    paths = dict(zip(prompt.images, (f"{home}/{name}" for name in _names(prompt)), strict=True))
    parts = (
        replace(part, path=paths.get(part.path, part.path)) if isinstance(part, ImagePart | FileRefPart) else part
        for part in prompt.parts
    )
    images = {paths[path]: data for path, data in prompt.images.items()}
    return replace(prompt, parts=tuple(parts), images=images)


def _names(prompt: Prompt) -> list[str]:
    """A file keeps its name, which says what it is; pictures are numbered."""
    folder = f"{_FOLDER}/{prompt.prompt_id}"
    files = {part.path for part in prompt.parts if isinstance(part, FileRefPart)}
    return [
        f"{folder}/{number}/{PurePath(path).name}" if path in files else f"{folder}/{number}{PurePath(path).suffix}"
        for number, path in enumerate(prompt.images)
    ]
