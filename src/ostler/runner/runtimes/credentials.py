"""Finds what agents can log in with on a host: in its variables, and in the files that agents themselves keep."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import Credential

_LARGEST_FILE = 2**20


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One credential; its value is never shown unless somebody asks for it."""

    name: str
    source: str
    """The variable or the file it comes from."""
    value: str

    def __repr__(self) -> str:
        return f"Found(name={self.name!r}, source={self.source!r})"


def find_credentials(
    credentials: Sequence[Credential], *, environ: Mapping[str, str], home: Path | None
) -> tuple[Found, ...]:
    """The first place of each credential that has one; without a home only variables are looked at."""
    found = (next(_sources(credential, environ, home), None) for credential in credentials)
    return tuple(filter(None, found))


def _sources(credential: Credential, environ: Mapping[str, str], home: Path | None) -> Iterator[Found]:
    for variable in credential.env:
        if value := environ.get(variable, "").strip():
            yield Found(name=credential.name, source=f"variable {variable}", value=value)
    for file, key in credential.files:
        if home is not None and (stored := _value_in(home / file, key)) is not None:
            yield Found(name=credential.name, source=f"file ~/{file}", value=stored)


def _value_in(file: Path, key: str) -> str | None:
    """The text at a dotted key of a JSON file, or None if anything about it is otherwise."""
    found: Any = _document(file)
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found.strip() or None if isinstance(found, str) else None


def _document(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(_LARGEST_FILE))
    except (OSError, msgspec.DecodeError):
        return None
