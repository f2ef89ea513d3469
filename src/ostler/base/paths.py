"""Questions about paths that come from clients: a path nobody could have is simply not there."""

import os
import stat


def is_file(path: str) -> bool:
    """Whether this names an ordinary file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116  pathlib raises for a path that is too long
    except (OSError, ValueError):
        return False
