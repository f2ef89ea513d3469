"""Skills that a client of the daemon API gives with a session: their texts become instructions of the agent."""

import re

from ostler.base.errors import FileMissing, InvalidRequest
from ostler.server.dialects.daemon.folder_config import SkillsConfig, SkillSource
from ostler.server.dialects.daemon.machine_files import MachineFiles, Place

_FILE = "SKILL.md"
_MOST_BYTES = 2**16
_MOST_FOLDERS = 1000
_NAME = re.compile(r"^name:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


async def skill_texts(files: MachineFiles, wanted: SkillsConfig, directory: str | None) -> str:
    """All that the skills say; raises for a source that has none."""
    texts = []
    for number, source in enumerate(wanted.sources):
        texts += await _texts_of(files, source, directory, f"skills.sources[{number}]")
    return "\n\n".join(texts)


async def _texts_of(files: MachineFiles, source: SkillSource, directory: str | None, field: str) -> list[str]:
    if source.type != "local":
        hint = "clone it onto the machine and give its folder with type 'local'"
        raise _refused(f"{field}.type", f"'{source.type[:40]}' is not fetched; {hint}")
    found = await _skills_below(files, _folder(source, directory, f"{field}.source"))
    if source.skills is not None:
        if missing := set(source.skills) - set(found):
            known = ", ".join(sorted(found)) or "none"
            raise _refused(f"{field}.skills", f"'{min(missing)[:80]}' is not there; there are {known}")
        found = {name: found[name] for name in source.skills}
    if not found:
        raise _refused(f"{field}.source", f"has no {_FILE}, in itself, in its folders or in those of skills/")
    return [f"# Skill: {name}\n\n{text}\n\nIts files are in {folder}." for name, (folder, text) in found.items()]


def _folder(source: SkillSource, directory: str | None, field: str) -> str:
    if not source.source.startswith("/") and directory is None:
        raise _refused(field, "must be an absolute folder, or one of the session's directory")
    above = source.source if source.source.startswith("/") else f"{directory}/{source.source}"
    return f"{above.rstrip('/')}/{source.subpath.strip('/')}" if source.subpath else above.rstrip("/")


async def _skills_below(files: MachineFiles, folder: str) -> dict[str, tuple[str, str]]:
    """By name the folder and the text of each."""
    found = {}
    for path in (folder, *await _folders_in(files, folder), *await _folders_in(files, f"{folder}/skills")):
        if (text := await _text(await files.find(f"{path}/{_FILE}"))) is not None:
            named = _NAME.search(text.partition("\n---")[0])
            found[named[1].strip("\"'") if named else path.rpartition("/")[2]] = (path, text.strip())
    return found


async def _folders_in(files: MachineFiles, folder: str) -> list[str]:
    place = await files.find(folder)
    try:
        listing = await place.workspaces.files.list(*place.as_folder, _MOST_FOLDERS)
    except FileMissing:
        return []
    return [f"{folder}/{entry.path.rpartition('/')[2]}" for entry in listing.entries if entry.kind == "folder"]


async def _text(place: Place) -> str | None:
    try:
        found = await place.workspaces.files.read(place.place, place.path, offset=0, length=_MOST_BYTES)
    except FileMissing:
        return None
    return found.data.decode(errors="replace")


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})
