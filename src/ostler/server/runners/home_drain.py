"""Whether the runner of this process drains, remembered in the state folder: it has no key that could say so."""

from pathlib import Path

import msgspec

from ostler.base import private
from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log

log = Log(__name__)
_NAME = "drain.json"


class _Drain(msgspec.Struct, frozen=True):
    until: str
    """How long turns under way may go on."""


class HomeDrain:
    """One small file, which is there while it drains; to be called in a thread."""

    def __init__(self, state_dir: Path) -> None:
        self._file = state_dir / _NAME

    def read(self) -> str | None:
        """How long turns under way may go on, if it drains."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=_Drain).until
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("runner.drain_not_read", file=str(self._file), reason=str(error))
            return None

    def write(self, until: str | None) -> None:
        """Remember it, or that it does not drain."""
        try:
            if until is None:
                self._file.unlink(missing_ok=True)
            else:
                private.replace_file(self._file, msgspec.json.encode(_Drain(until)))
        except OSError as error:
            raise StoreUnavailable(reason=error.strerror or str(error)) from error
