"""A small runner in a process of its own: `server.py LEASH KIND...` starts tree.py, says so, and waits to be killed."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import Command, Process


async def main() -> None:
    tree = str(Path(__file__).with_name("tree.py"))
    argv = [sys.executable, "-I", "-S", tree, sys.argv[1], "stay", *sys.argv[2:]]
    command = Command(argv=argv, env={"PATH": os.defpath}, cwd="/")
    folder = Path(tempfile.mkdtemp())
    process = await Process.start(NurseryHandle({}), command, folder, lambda: None, patience=0)
    print(process.pid, flush=True)
    await asyncio.sleep(600)


asyncio.run(main())
