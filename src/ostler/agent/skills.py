"""Skills: folders with a SKILL.md, of which the model knows name and purpose and reads the rest when it needs it."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ostler.agent.operations import Operations, ToolFailed

FOLDERS = (".agents/skills", ".ostler/skills")
_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_LONGEST = 1024
_MOST = 100
_MOST_BYTES = 2**18


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill."""

    name: str
    description: str
    path: str
    """Where the model reads it."""


def skills(workspace: Operations, home: Path) -> list[Skill]:
    """Those of the workspace, and those of the session's home that have no namesake there; sorted by name."""
    found: dict[str, Skill] = {}
    for skill in (*_of_home(home), *_of_workspace(workspace)):
        found[skill.name] = skill
    return [found[name] for name in sorted(found)][:_MOST]


def _of_workspace(workspace: Operations) -> Iterator[Skill]:
    for folder in FOLDERS:
        try:
            names = sorted(workspace.names(folder))
        except ToolFailed:
            continue
        for name in names:
            path = f"{folder}/{name}/{_FILE}"
            try:
                content = workspace.read(path, _MOST_BYTES)
            except ToolFailed:
                continue
            yield from _skill(name, path, content)


def _of_home(home: Path) -> Iterator[Skill]:
    for folder in FOLDERS:
        for file in sorted((home / folder).glob(f"*/{_FILE}")):
            if file.is_file() and file.stat().st_size <= _MOST_BYTES:
                yield from _skill(file.parent.name, str(file), file.read_bytes())


def _skill(folder: str, path: str, content: bytes) -> Iterator[Skill]:
    """The skill of a file, if its head says what it is."""
    head = _head(content.decode(errors="replace"))
    name, description = head.get("name", folder), head.get("description", "")
    if name == folder and _NAME.fullmatch(name) and description:
        yield Skill(name=name, description=description[:_LONGEST], path=path)


def _head(text: str) -> dict[str, str]:
    """The plain fields between the first two lines of dashes; a value may go on in indented lines."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    fields: dict[str, str] = {}
    last = ""
    for line in lines[1:]:
        if line.strip() == "---":
            return fields
        if line[:1].isspace() and last:
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        elif ":" in line:
            last, _, value = line.partition(":")
            last = last.strip()
            fields[last] = value.strip().strip("\"'").removeprefix(">").removeprefix("|").strip()
    return {}


def as_instructions(found: list[Skill]) -> str:
    """What the model is told of them; empty if there are none."""
    if not found:
        return ""
    lines = "\n".join(f"- {skill.name}: {skill.description} ({skill.path})" for skill in found)
    return f"Skills, which are instructions for special tasks. When one fits, read its file first:\n\n{lines}"
