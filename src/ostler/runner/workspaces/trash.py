"""Removal in two steps: a rename that returns at once, and a background thread that does the slow part."""

from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.runner.file_trees.stopping import Stop, Stopped, under
from ostler.runner.workspaces.providers import Providers

log = Log(__name__)
_CLOSE_SECONDS = 5.0


class Trash:
    """What waits to be removed; it survives a crash and is removed after the next start."""

    def __init__(self, folder: Path, providers: Providers) -> None:
        self._folder = folder
        self._providers = providers
        self._queue: SimpleQueue[Path | None] = SimpleQueue()
        self._stop = Stop()
        self._thread = Thread(target=self._reap, name="ostler-trash", daemon=True)

    def start(self) -> None:
        """Begin with what an earlier runner left."""
        for left in sorted(self._folder.iterdir()):
            self._queue.put(left)
        self._thread.start()

    def throw(self, folder: Path, kind: str) -> None:
        """Take a folder out of the way; `kind` is the provider that knows how to remove it."""
        place = self._folder / f"{new_id('trs')}.{kind}"
        try:
            folder.rename(place)
        except FileNotFoundError:  # somebody else has removed it
            return
        self._queue.put(place)

    def close(self) -> None:
        """Stop soon; what is left is removed after the next start."""
        self._stop.request()
        self._queue.put(None)
        self._thread.join(_CLOSE_SECONDS)

    def _reap(self) -> None:
        while (place := self._queue.get()) is not None:
            try:
                with under(self._stop):
                    self._providers.by_name(place.suffix.removeprefix(".")).purge(place)
            except Stopped:
                return
            except Exception:
                log.error("trash.stuck", folder=str(place), exc_info=True)
