"""One login by the agent's own command, from its start to its end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ostler.base.clock import SystemClock, later
from ostler.base.errors import Unprocessable
from ostler.base.logs import Log
from ostler.runner.logins.screen import Screen
from ostler.runner.logins.terminal import Terminal
from ostler.wire.agents import LoginStep, RunningLogin

log = Log(__name__)
_SECONDS = 900.0
_FIRST_WORDS_SECONDS = 5.0
_OVER: frozenset[LoginStep] = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
Verify = Callable[[], Awaitable[str | None]]
"""Called when the command says that it is done: why it is not, or None."""


class Attempt:
    """A command in a terminal; nothing that it prints outlives it but the last words of one that failed."""

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
        self._terminal: Terminal | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._step in _OVER

    async def start(self, argv: Sequence[str], env: Mapping[str, str], folder: str) -> None:
        """Start the command and wait a moment for what a person needs."""
        try:
            self._terminal = await Terminal.start(argv, env, folder)
        except OSError as error:
            self._end("failed", f"{argv[0]} cannot be started: {error.strerror}.")
            self._clear()
            return
        self._task = asyncio.create_task(self._follow(self._terminal), name=f"login of {self._agent}")
        try:
            async with asyncio.timeout(_FIRST_WORDS_SECONDS):
                while not self.is_over and not _is_enough(self._terminal.screen):
                    self._terminal.changed.clear()
                    await self._terminal.changed.wait()
        except TimeoutError:
            return

    async def _follow(self, terminal: Terminal) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                code = await terminal.wait()
                failure = (
                    await self._verify() if code == 0 else (terminal.screen.last_line() or f"It ended with {code}.")
                )
            self._end("succeeded" if failure is None else "failed", failure)
        except TimeoutError:
            self._end("timed_out", f"Nobody logged in within {self._seconds / 60:.0f} minutes.")
        except asyncio.CancelledError:
            self._end("cancelled")
            raise
        except Exception as error:  # the edge of a background task
            log.error("login.failed", exc_info=error, agent=self._agent)
            self._end("failed", "It could not be finished; the server's log says why.")
        finally:
            await asyncio.shield(terminal.close())
            self._terminal = None
            self._clear()

    def _end(self, step: LoginStep, message: str | None = None) -> None:
        self._step, self._message = step, message
        log.info("login.over", agent=self._agent, step=step)
        if self._terminal is not None:
            self._terminal.changed.set()

    def answer(self, code: str) -> None:
        """Type what the agent asked for."""
        if self.is_over or self._terminal is None:
            raise Unprocessable(reason=f"No login of '{self._agent}' is under way. Start one first.")
        if not code.isprintable():
            reason = "must be one line of printable characters"
            raise Unprocessable(reason=f"code: {reason}.", errors={"code": [reason]})
        self._terminal.screen.hide(code)
        self._terminal.type(code)

    async def close(self) -> None:
        """Cancel it; returns when nothing of it runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def shown(self) -> RunningLogin:
        """How it stands."""
        screen = self._terminal.screen if self._terminal is not None and not self.is_over else None
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
