"""Tools and skills that clients of the daemon API keep with a folder: entries by name, in a file of the folder.

The files are where sandbox-agent has them, so what it wrote is found. They may come with a repository, so nothing in
them is given to an agent unless a client does so.
"""

import asyncio
from typing import Generic, TypeVar

import msgspec

from ostler.base.errors import FileMissing, InvalidRequest, NotFound, Unprocessable
from ostler.server.dialects.daemon.machine_files import MachineFiles, Place
from ostler.wire.struct import Request

_FOLDER = ".sandbox-agent/config"
_MOST_BYTES = 2**20
_entries = msgspec.json.Decoder(dict[str, msgspec.Raw])
T = TypeVar("T")


class SkillSource(Request, frozen=True, kw_only=True, omit_defaults=True):
    """Where skills come from."""

    type: str
    source: str
    skills: tuple[str, ...] | None = None
    """Only these."""
    ref: str | None = None
    subpath: str | None = None


class SkillsConfig(Request, frozen=True, kw_only=True):
    """Skills for an agent."""

    sources: tuple[SkillSource, ...]


class FolderConfig(Generic[T]):
    """One of the files, `mcp.json` or `skills.json`, of any folder."""

    def __init__(self, name: str, decoder: msgspec.json.Decoder[T]) -> None:
        self._name = name
        self._decoder = decoder
        self._one_at_a_time = asyncio.Lock()

    async def get(self, files: MachineFiles, folder: str, entry: str) -> T:
        """One entry."""
        place = await self._place(files, folder)
        found = (await _read(place)).get(entry)
        if found is None:
            raise NotFound(what=f"entry in {place.shown}", value=entry, hint="Store it with PUT.")
        try:
            return self._decoder.decode(found)
        except msgspec.MsgspecError as error:
            raise Unprocessable(reason=f"The entry '{entry}' of {place.shown} is not read: {error}.") from error

    async def put(self, files: MachineFiles, folder: str, entry: str, value: T) -> None:
        """Store an entry in the place of one of its name."""
        async with self._one_at_a_time:
            place = await self._place(files, folder)
            await _write(place, {**await _read(place), entry: msgspec.Raw(msgspec.json.encode(value))})

    async def remove(self, files: MachineFiles, folder: str, entry: str) -> None:
        """Remove an entry; one that is not there is fine."""
        async with self._one_at_a_time:
            place = await self._place(files, folder)
            found = await _read(place)
            if found.pop(entry, None) is not None:
                await _write(place, found)

    async def _place(self, files: MachineFiles, folder: str) -> Place:
        if not folder.startswith("/"):
            reason = f"'{folder[:200]}' is not absolute"
            raise InvalidRequest(reason=f"directory: {reason}.", errors={"directory": [reason]})
        return await files.find(f"{folder.rstrip('/')}/{_FOLDER}/{self._name}")


async def _read(place: Place) -> dict[str, msgspec.Raw]:
    try:
        found = await place.workspaces.files.read(place.place, place.path, offset=0, length=_MOST_BYTES)
    except FileMissing:
        return {}
    try:
        return _entries.decode(found.data) if found.data.strip() else {}
    except msgspec.MsgspecError as error:
        raise Unprocessable(
            reason=f"{place.shown} is no JSON object of entries: {error}. Mend or remove it."
        ) from error


async def _write(place: Place, entries: dict[str, msgspec.Raw]) -> None:
    data = msgspec.json.format(msgspec.json.encode(entries), indent=2)
    if len(data) > _MOST_BYTES:
        raise Unprocessable(
            reason=f"{place.shown} would be larger than {_MOST_BYTES} bytes. Remove some entries first."
        )
    await place.workspaces.files.write(place.place, place.path, data, executable=None)
