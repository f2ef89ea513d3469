"""The server with one seeded bug, which OSTLER_CHAOS_BUG names; the product itself knows nothing of this."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.cli import main
from ostler.runner.processes import nursery
from ostler.runner.processes.process import Process
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.log.feed import frame
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.session_log import SessionLog
from ostler.server.store.records import Append, AppendResult
from ostler.server.store.sql.verbs import SqlLogs
from ostler.server.store.sqlite.database import Writer
from ostler.wire.running import Answer, PermissionAnswer

VARIABLE = "OSTLER_CHAOS_BUG"
_SLOW_DISK = 0.05


def acknowledge_first() -> None:
    """Show and acknowledge events before they are on disk."""
    commit, wait = Writer._commit, SessionLog.commit

    def slow(self: Writer, group: list[Any]) -> list[Any]:
        time.sleep(_SLOW_DISK)
        return commit(self, group)

    async def at_once(self: SessionLog, append: Append, written: "asyncio.Future[AppendResult]") -> None:
        if append.first == 1:  # a session that is not there could not even be shown
            await wait(self, append, written)
            return
        self._durable_state = self.state
        self.feed.publish([frame(number, event) for number, event in enumerate(append.events, append.first)])
        written.add_done_callback(lambda done: done.exception())

    Writer._commit = slow  # type: ignore[method-assign]  # a seeded bug
    SessionLog.commit = at_once  # type: ignore[method-assign]  # a seeded bug


def forget_claims() -> None:
    """Do a request again whose answer was lost."""

    async def nothing(self: Reads, claim: str | None) -> None:
        return None

    Reads.outcome_of = nothing  # type: ignore[method-assign]  # a seeded bug


def repeat_inputs() -> None:
    """Send everything again to an agent that is adopted."""
    greet = Process._on_hello

    def forgetful(self: Process, report: dict[str, Any]) -> None:
        greet(self, {**report, "written": 0})

    Process._on_hello = forgetful  # type: ignore[method-assign]  # a seeded bug
    _other_keeper()


def orphan_grandchildren() -> None:
    """End the agent's process only, not what it started."""
    _other_keeper()


def _other_keeper() -> None:
    spawn = nursery._spawn
    nursery._PROGRAM = str(Path(__file__).with_name("bug_keeper.py"))
    nursery._spawn = lambda door, environ: spawn(door, {**environ, VARIABLE: os.environ[VARIABLE]})


def _known_step(change: int) -> None:
    last_step = SqlLogs.last_step

    async def wrong(self: SqlLogs, session_id: str, start: int) -> int:
        known = await last_step(self, session_id, start)
        return known + change if known else known

    SqlLogs.last_step = wrong  # type: ignore[assignment]  # a seeded bug


def skip_a_step() -> None:
    """Go on one step too late after a restart."""
    _known_step(1)


def repeat_a_step() -> None:
    """Go on one step too early after a restart."""
    _known_step(-1)


def lose_a_wake_up() -> None:
    """Do not notice every second time that an agent said something."""
    hear = Process._on_output
    rings = 0

    def deaf(self: Process) -> None:
        nonlocal rings
        rings += 1
        if self.is_gone or rings % 2:
            hear(self)

    Process._on_output = deaf  # type: ignore[method-assign]  # a seeded bug


def hear_the_opposite() -> None:
    """Tell agents the opposite of what was decided."""
    tell = SessionAgent.tell

    async def wrong(self: SessionAgent, answer: Answer) -> None:
        if isinstance(answer, PermissionAnswer):
            answer = msgspec.structs.replace(answer, allow=not answer.allow)
        await tell(self, answer)

    SessionAgent.tell = wrong  # type: ignore[method-assign]  # a seeded bug


BUGS: dict[str, Callable[[], None]] = {
    "acknowledge-first": acknowledge_first,
    "forget-claims": forget_claims,
    "repeat-inputs": repeat_inputs,
    "skip-a-step": skip_a_step,
    "repeat-a-step": repeat_a_step,
    "lose-a-wake-up": lose_a_wake_up,
    "orphan-grandchildren": orphan_grandchildren,
    "hear-the-opposite": hear_the_opposite,
}


def run(arguments: Sequence[str]) -> None:
    """Be `ostler` with the bug."""
    BUGS[os.environ[VARIABLE]]()
    main(arguments)


if __name__ == "__main__":
    run(sys.argv[1:])
