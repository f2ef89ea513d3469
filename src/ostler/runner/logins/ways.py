"""Which ways to log in an agent tells, asked once of each program."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter, Installation, Launch, LoginTalk, Ways
from ostler.base.errors import Unprocessable
from ostler.runner.logins.dialogue import Dialogue
from ostler.runner.runtimes.home import prepare_home
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import OWN, Starter
from ostler.wire.running import AgentSpec

_SECONDS = 30.0
_AGAIN_SECONDS = 60.0
_SCREEN = {
    "BROWSER": "true",
    "NO_BROWSER": "true",
    "TERM": "xterm-256color",
    "COLUMNS": "500",
    "PYTHONUNBUFFERED": "1",
}
"""No browser is opened on the runner's machine: the person is elsewhere, and has to see at once what is printed."""
_BROWSER = '#!/bin/sh\nprintf "%s\\n" "$1" >&2\n'


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has reported, or why it has not."""

    ways: Ways = Ways()
    failure: str | None = None


class AskedWays:
    """The ways of all agents; each program is asked when somebody looks, and again only if it did not answer."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._answers: dict[str, tuple[Installation, asyncio.Task[Reported], float]] = {}

    async def of(self, adapter: Adapter, installation: Installation) -> Reported:
        """What the agent says of itself."""
        login, agent = adapter.info.login, adapter.info.id
        if login.talk is None or not login.tells_ways:
            return Reported()
        now = asyncio.get_running_loop().time()
        known = self._answers.get(agent)
        if known is None or known[0] != installation or _is_stale(known[1], now - known[2]):
            if known is not None:
                known[1].cancel()
            asking = asyncio.create_task(self._ask(adapter, installation, login.talk(None)), name=f"ways of {agent}")
            self._answers[agent] = known = (installation, asking, now)
        return await asyncio.shield(known[1])

    async def close(self) -> None:
        """Ask no more."""
        asking = [task for _, task, _ in self._answers.values() if not task.done()]
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    async def _ask(self, adapter: Adapter, installation: Installation, talk: LoginTalk) -> Reported:
        with tempfile.TemporaryDirectory(prefix="ostler-login-", ignore_cleanup_errors=True) as home:
            try:
                start = login_start(adapter, installation, home)
                dialogue = await Dialogue.start(self._starter, start, talk)
            except (OSError, Unprocessable) as error:
                return Reported(failure=str(error))
            failure: str | None = f"it gave no answer within {_SECONDS:.0f} seconds"
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_SECONDS):
                        failure = await dialogue.outcome()
            finally:
                await asyncio.shield(dialogue.close())
            return Reported(ways=dialogue.ways, failure=failure)


def _is_stale(asking: asyncio.Task[Reported], age: float) -> bool:
    """Whether an agent that failed to answer is to be asked again."""
    if not asking.done():
        return False
    return asking.cancelled() or (asking.result().failure is not None and age > _AGAIN_SECONDS)


def login_start(adapter: Adapter, installation: Installation, home: str) -> Start:
    """The start of a login, in a home that is made ready for it."""
    login = adapter.info.login
    spec = AgentSpec(
        session_id="", agent=adapter.info.id, start=1, cwd=home, env={}, permission_mode="default", home=home
    )
    bare = Launch(argv=(*installation.command, *login.command))
    launch = bare if login.talk is None else adapter.prepare(spec, installation)
    prepare_home(home, launch.files)
    found = login.env_of(installation.path) if login.env_of is not None else {}
    return Start(
        grant=OWN,
        argv=launch.argv,
        env={**_SCREEN, **launch.env, **login.env, **found},
        home=home,
        cwd=str(Path(home) / "tmp"),
        files=launch.files,
    )


def with_browser(start: Start) -> Start:
    """A start with a program that agents open pages with: the person is elsewhere, so it only shows them."""
    program = Path(start.home) / ".run" / "browser"
    program.write_text(_BROWSER)
    program.chmod(0o700)
    return msgspec.structs.replace(start, env={**start.env, "BROWSER": str(program)})
