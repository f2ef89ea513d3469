"""Installations under way: one per agent however many wait for it, each with its progress so far."""

import asyncio
from collections.abc import AsyncIterator, Callable
from threading import Event, Thread

from ostler.agents.adapter import Adapter, Installation
from ostler.base.errors import InstallFailed
from ostler.base.logs import Log
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.toolbox import Progress

log = Log(__name__)
_STOP_SECONDS = 5.0


class RunningInstallation:
    """One installation in a thread of its own; whoever waits for it may leave without ending it."""

    def __init__(self, work: Callable[[Progress], Installation], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = work
        self._changed = asyncio.Event()
        self.lines: list[str] = []
        self.result: asyncio.Future[Installation] = self._loop.create_future()
        # a daemon: a vendor that went silent must not keep the server from exiting
        Thread(target=self._run, name=name, daemon=True).start()

    async def follow(self) -> AsyncIterator[str]:
        """What it says, from its beginning to its end."""
        read = 0
        while read < len(self.lines) or not self.result.done():
            if read < len(self.lines):
                yield self.lines[read]
                read += 1
            else:
                self._changed.clear()
                await self._changed.wait()

    def _run(self) -> None:
        try:
            made = self._work(lambda line: self._later(lambda: self._say(line)))
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: whoever waits gets it
            failure = error
            self._later(lambda: self._end(failure))
        else:
            self._later(lambda: self._end(made))

    def _later(self, step: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(step)
        except RuntimeError:
            log.debug("install.unheard")  # the server is gone

    def _say(self, line: str) -> None:
        self.lines.append(line)
        self._changed.set()

    def _end(self, result: Installation | BaseException) -> None:
        if isinstance(result, Installation):
            self.result.set_result(result)
        else:
            self.result.set_exception(result)
            self.result.exception()  # heard, even if nobody waits any more
        self._changed.set()


class Installations:
    """Starts installations and lets everyone join those under way."""

    def __init__(self, installer: Installer | None) -> None:
        self._installer = installer
        self._underway: dict[tuple[str, str | None, bool], RunningInstallation] = {}
        self._stop = Event()

    def begin(self, adapter: Adapter, version: str | None, *, anew: bool = False) -> RunningInstallation:
        """The installation of an agent: the one under way, or a new one; `anew` also replaces what is there."""
        agent = adapter.info.id
        key = agent, version, anew
        if (known := self._underway.get(key)) is not None:
            return known
        installer = self._installer
        if installer is None:
            raise InstallFailed(agent=agent, reason="put its program on the PATH of the server.")
        log.info("install.started", agent=agent, version=version)
        made = RunningInstallation(
            lambda progress: installer.install(
                agent, adapter.sources, version=version, anew=anew, progress=progress, stop=self._stop
            ),
            name=f"install {agent}",
        )
        self._underway[key] = made
        made.result.add_done_callback(lambda result: self._ended(key, result))
        return made

    def _ended(self, key: tuple[str, str | None, bool], result: "asyncio.Future[Installation]") -> None:
        self._underway.pop(key)
        agent, version, _ = key
        if result.cancelled():
            log.info("install.stopped", agent=agent, version=version)
        elif (error := result.exception()) is not None:
            log.warning("install.failed", agent=agent, version=version, reason=str(error))
        else:
            log.info("install.done", agent=agent, version=result.result().version)

    def progress(self, agent: str) -> str | None:
        """The last thing an installation said, or None if there is none."""
        found = [underway for (name, _, _), underway in self._underway.items() if name == agent]
        return (found[-1].lines or ["starting"])[-1] if found else None

    async def close(self) -> None:
        """Call everything off."""
        self._stop.set()
        results = [underway.result for underway in self._underway.values()]
        if results:
            await asyncio.wait(results, timeout=_STOP_SECONDS)
