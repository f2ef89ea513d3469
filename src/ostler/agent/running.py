"""The outer loop: waits for prompts and gives each a turn, until the input ends."""

import asyncio
import os
import signal
import sys
import traceback
from pathlib import Path

from ostler.agent.channel import Inbox, write
from ostler.agent.journal import Journal
from ostler.agent.loop import Loop
from ostler.agent.mcp.servers import Servers
from ostler.agent.models.asking import ModelFailed
from ostler.agent.models.endpoint import without_keys
from ostler.agent.operations import Operations
from ostler.agent.processes import adopt_orphans
from ostler.agent.through import Through
from ostler.agent.workspace import Workspace
from ostler.wire.own_agent import Failed, Start


def run(start: Start, journal: Journal, rest: bytes) -> int:
    """Talk until the input ends; `rest` has been read of it."""
    adopt_orphans()
    asyncio.run(_run(start, journal, rest))
    return 0


async def _run(start: Start, journal: Journal, rest: bytes) -> None:
    inbox = Inbox()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, inbox.close)
    reading = asyncio.create_task(inbox.read(rest))
    servers = Servers(start.mcp_servers, without_keys(os.environ))
    servers.start()
    loop = Loop(start, journal, inbox, _workspace(start), os.environ, servers)
    try:
        while (prompt := await inbox.prompts.get()) is not None:
            turn = asyncio.create_task(loop.turn(prompt))
            inbox.begin_turn(turn)
            await asyncio.wait({turn})
            inbox.end_turn()
            if not (inbox.is_closed and turn.cancelled()):
                _conclude(loop, turn)
    finally:
        reading.cancel()
        await asyncio.wait({reading})
        await loop.close()
        await servers.close()


def _workspace(start: Start) -> Operations:
    return Through(start.through, start.folder) if start.through else Workspace(str(Path.cwd()))


def _conclude(loop: Loop, turn: asyncio.Task[None]) -> None:
    """Say how a turn ended that did not say so itself."""
    if turn.cancelled():
        loop.end("interrupted", "interrupted")
        return
    match turn.exception():
        case None:
            return
        case ModelFailed() as failed:
            write(Failed(message=str(failed), code=failed.code, status=failed.status, resets_at=failed.resets_at))
            loop.end("failed", failed.code)
        case error:
            traceback.print_exception(error, file=sys.stderr)
            write(Failed(message=f"The agent itself failed: {error}", code="agent_error"))
            loop.end("failed", "agent_error")
