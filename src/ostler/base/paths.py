"""Questions about paths that come from clients: a path nobody could have is simply not there."""

import os
import stat


def is_file(path: str) -> bool:
    """Whether this names an ordinary file."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: str) -> bool:
    """Whether this names a folder."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode  # noqa: PTH116  pathlib's own questions raise for a path that is too long
    except (OSError, ValueError):
        return 0
