"""How people are told about files that are too large for snapshots."""

from collections.abc import Collection, Sequence

from ostler.server.sessions import drafts
from ostler.wire.running import Draft
from ostler.wire.workspaces import LargeFile

_NAMED = 10
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024


def large_file_notices(files: Sequence[LargeFile], known: Collection[str] = ()) -> list[Draft]:
    """A notice that names the files, unless they are known."""
    fresh = [file for file in files if file.path not in known]
    if not fresh:
        return []
    names = [f"{file.path} ({size_of(file.size)})" for file in fresh[:_NAMED]]
    more = [f"and {len(fresh) - _NAMED} more"] if len(fresh) > _NAMED else []
    text = f"Too large to be kept, so snapshots, diffs and deliveries are without: {', '.join([*names, *more])}."
    hint = "The settings max_snapshot_file_bytes and max_snapshot_bytes are the limits."
    return [drafts.warning(f"{text} {hint}", "too_large")]


def size_of(count: int) -> str:
    """A number of bytes for people."""
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
