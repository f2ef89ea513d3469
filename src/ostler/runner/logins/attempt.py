"""One login by the agent itself, from its start to its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from ostler.base.clock import SystemClock, later
from ostler.base.errors import Unprocessable
from ostler.base.logs import Log
from ostler.runner.logins.screen import Screen
from ostler.wire.agents import LoginStep, RunningLogin

log = Log(__name__)
_SECONDS = 900.0
_FIRST_WORDS_SECONDS = 5.0
_OVER: frozenset[LoginStep] = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
Verify = Callable[[str], Awaitable[str | None]]
"""Called with the last words when the agent says that it is done: why it is not, or None."""


class Course(Protocol):
    """What a login runs in: a command in a terminal, or a dialogue with the agent."""

    screen: Screen
    changed: asyncio.Event
    """Set when there is more to see."""

    def type(self, text: str) -> None:
        """Type a line."""

    async def outcome(self) -> str | None:
        """Why it failed, when it is over."""

    async def close(self) -> None:
        """End it with everything below it; returns when it is gone."""


class Attempt:
    """A course while it runs; nothing that it shows outlives it but the last words of one that failed."""

    def __init__(self, agent: str, verify: Verify, clear: Callable[[], None], seconds: float = _SECONDS) -> None:
        """`clear` is called when all is over."""
        clock = SystemClock()
        self._agent = agent
        self._verify = verify
        self._clear = clear
        self._seconds = seconds
        self._started_at = clock.now()
        self._ends_at = later(self._started_at, seconds)
        self._step: LoginStep = "starting"
        self._message: str | None = None
        self._course: Course | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._step in _OVER

    async def start(self, begin: Callable[[], Awaitable[Course]]) -> None:
        """Begin and wait a moment for what a person needs."""
        try:
            self._course = await begin()
        except OSError as error:
            self._end("failed", f"It cannot be started: {error.strerror}.")
            self._clear()
            return
        except BaseException:  # whoever asked has left, or it was refused: the next one may begin
            self._end("cancelled")
            self._clear()
            raise
        self._task = asyncio.create_task(self._follow(self._course), name=f"login of {self._agent}")
        try:
            async with asyncio.timeout(_FIRST_WORDS_SECONDS):
                while not self.is_over and not _is_enough(self._course.screen):
                    self._course.changed.clear()
                    await self._course.changed.wait()
        except TimeoutError:
            return

    async def _follow(self, course: Course) -> None:
        step: LoginStep = "cancelled"
        message: str | None = None
        try:
            step, message = await self._result(course)
        finally:
            try:
                await asyncio.shield(course.close())
            finally:  # it is over when nothing of it is left: the next one may begin then
                self._clear()
                self._end(step, message)
                self._course = None

    async def _result(self, course: Course) -> tuple[LoginStep, str | None]:
        try:
            async with asyncio.timeout(self._seconds):
                failure = await course.outcome() or await self._verify(course.screen.last_line())
        except TimeoutError:
            return "timed_out", f"Nobody logged in within {self._seconds / 60:.0f} minutes."
        except Exception as error:  # the edge of a background task
            log.error("login.failed", exc_info=error, agent=self._agent)
            return "failed", "It could not be finished; the server's log says why."
        return ("succeeded" if failure is None else "failed"), failure

    def _end(self, step: LoginStep, message: str | None = None) -> None:
        self._step, self._message = step, message
        log.info("login.over", agent=self._agent, step=step)
        if self._course is not None:
            self._course.changed.set()

    def answer(self, code: str) -> None:
        """Type what the agent asked for."""
        if self.is_over or self._course is None:
            raise Unprocessable(reason=f"No login of '{self._agent}' is under way. Start one first.")
        if not code.isprintable():
            reason = "must be one line of printable characters"
            raise Unprocessable(reason=f"code: {reason}.", errors={"code": [reason]})
        self._course.screen.hide(code)
        self._course.type(code)

    async def close(self) -> None:
        """Cancel it; returns when nothing of it runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def shown(self) -> RunningLogin:
        """How it stands."""
        screen = self._course.screen if self._course is not None and not self.is_over else None
        step = "waiting" if screen is not None and screen.url is not None else self._step
        return RunningLogin(
            step=step,
            started_at=self._started_at,
            ends_at=self._ends_at,
            url=screen.url if screen is not None else None,
            code=screen.code if screen is not None else None,
            wants_code=screen.asks if screen is not None else False,
            message=self._message,
        )


def _is_enough(screen: Screen) -> bool:
    """Whether a person can begin."""
    return screen.url is not None and (screen.code is not None or screen.asks)
