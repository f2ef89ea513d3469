"""The images of a prompt as files of the agent's home, for agents that want a path."""

import asyncio
from pathlib import PurePath

from msgspec.structs import replace

from ostler.base.errors import StoreUnavailable
from ostler.runner.runtimes.home import write_in_home
from ostler.wire.parts import ImagePart
from ostler.wire.running import Prompt

_FOLDER = ".ostler/images"


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
    if not prompt.images:
        return prompt
    paths = dict(zip(prompt.images, (f"{home}/{name}" for name in _names(prompt)), strict=True))
    parts = (
        replace(part, path=paths.get(part.path, part.path)) if isinstance(part, ImagePart) else part
        for part in prompt.parts
    )
    images = {paths[path]: data for path, data in prompt.images.items()}
    return replace(prompt, parts=tuple(parts), images=images)


def _names(prompt: Prompt) -> list[str]:
    folder = f"{_FOLDER}/{prompt.prompt_id}"
    return [f"{folder}/{number}{PurePath(path).suffix}" for number, path in enumerate(prompt.images)]
