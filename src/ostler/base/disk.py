"""When a disk takes nothing more, which passes, unlike other errors of files."""

import errno

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_full(error: BaseException) -> bool:
    """Whether this says that there is no room left."""
    return isinstance(error, OSError) and error.errno in _FULL
