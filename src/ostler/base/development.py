"""Variables from files beside a checkout: for development, and never anywhere else."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ostler.base.errors import SettingsError

WHEN = "OSTLER_ENV"
_FILES = (".env.development.local", ".env.development")
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


def development_files(environ: Mapping[str, str], folder: Path) -> list[Path]:
    """Those that count, the most important first; none unless OSTLER_ENV says that this is development."""
    if environ.get(WHEN) != "development":
        return []
    return [folder / name for name in _FILES if (folder / name).is_file()]


def with_files(environ: Mapping[str, str], files: list[Path]) -> dict[str, str]:
    """Variables with those of these files; what is set already wins, then the first file."""
    merged: dict[str, str] = {}
    for file in reversed(files):
        merged |= dict(_variables(file))
    return {**merged, **environ}


def _variables(file: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(name=WHEN, value=str(file), reason=f"cannot be read ({error}).") from error
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        if (found := _LINE.fullmatch(line)) is None:
            raise SettingsError(name=WHEN, value=f"{file}, line {number}", reason="must be NAME=VALUE.")
        yield found[1], _plain(found[2])


def _plain(value: str) -> str:
    """Without quotes; in double ones `\\n` is a new line, as keys need it."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace("\\n", "\n") if value[0] == '"' else value[1:-1]
    return value.partition(" #")[0].rstrip()
