"""The server, never looking for garbage, that writes which sessions it has in memory whenever it gets SIGUSR1.

Called as `counting_server.py FILE COMMAND...`, where the command would start a server.
"""

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path
from typing import Any

import ostler.app
from ostler.cli import main
from ostler.server.sessions.registry import Registry

FILE = Path(sys.argv[1])


class CountedRegistry(Registry):
    """Tells which sessions are live."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._write)

    def _write(self) -> None:
        draft = FILE.with_suffix(".draft")
        draft.write_text(json.dumps(list(self._live)))
        draft.rename(FILE)


if __name__ == "__main__":
    gc.enable = gc.disable
    vars(ostler.app)["Registry"] = CountedRegistry
    sys.argv = ["ostler", *sys.argv[sys.argv.index("ostler") + 1 :]]
    main()
