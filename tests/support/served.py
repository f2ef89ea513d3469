"""Runs `ostler` for the tests: on SIGUSR2 it writes to its standard error what each thread and each task waits for.

Called as `served.py ostler COMMAND...`.
"""

import asyncio
import faulthandler
import runpy
import signal
import sys

END = "End of stacks."


def _write_tasks(*_: object) -> None:
    try:
        for task in asyncio.all_tasks():
            task.print_stack(limit=10, file=sys.stderr)
    except RuntimeError:
        print("No event loop runs.", file=sys.stderr)
    print(END, file=sys.stderr, flush=True)


def watch() -> None:
    """From now on SIGUSR2 tells."""
    signal.signal(signal.SIGUSR2, _write_tasks)
    faulthandler.register(signal.SIGUSR2, all_threads=True, chain=True)


if __name__ == "__main__":
    watch()
    sys.argv = sys.argv[1:]
    runpy.run_module("ostler", run_name="__main__", alter_sys=True)
