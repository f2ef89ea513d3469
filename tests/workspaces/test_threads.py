"""Work of workspaces that nobody waits for any more."""

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ostler.runner.file_trees.stopping import Stop, check_wanted
from ostler.runner.workspaces.library import WorkspaceLibrary


async def test_work_that_is_stopped_with_its_caller_is_no_error_of_the_server(tmp_path: Path) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    library = await WorkspaceLibrary.open(tmp_path, environ=os.environ)
    begun = threading.Event()

    def work(stop: Stop) -> None:
        begun.set()
        while not stop.requested:
            pass
        check_wanted()

    waiting = asyncio.create_task(library.threads.run(work))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await library.close()
    assert reported == []
