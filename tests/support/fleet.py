"""A server in this process, and runners that are linked to it by real WebSockets, which a test may cut."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec

from ostler.app import make_server
from ostler.base.errors.runners import LinkLost
from ostler.base.ids import new_id
from ostler.base.private import close_state
from ostler.base.settings import Settings
from ostler.link.ends import RunnerEnd, ServerEnd
from ostler.machine import made_runner, made_workspaces
from ostler.runner.identity import this_machine
from ostler.runner.local import LocalRunner
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.processes.journal import Entry, read_calls
from ostler.server.api.app import build_app
from ostler.server.api.services import Services
from ostler.server.runners.registry import Runners
from ostler.server.store.records import RunnerKey, RunnerToken
from ostler.wire.runners import RunnerAbout
from tests.support.loopback import AcceptedSocket, socket_pair
from tests.support.patience import stretched

BEAT = 5.0


def settings_of(folder: Path, **more: Any) -> Settings:
    folder.mkdir(parents=True, exist_ok=True)
    close_state(folder)
    return Settings(state_dir=folder, repository_folders=(str(folder.parent),), warm_agents=0, **more)


async def machine_of(settings: Settings) -> tuple[LocalRunner, LocalWorkspaces]:
    """What runs agents below a state folder."""
    workspaces = await made_workspaces(settings)
    return made_runner(settings, workspaces), workspaces


class Host:
    """A machine that runs agents, with a state folder of its own."""

    def __init__(self, runners: Runners, folder: Path, **about: Any) -> None:
        self._settings = settings_of(folder)
        self._runners = runners
        self._given = about
        self._link = AsyncExitStack()
        self._ends: list[asyncio.Task[Any]] = []
        self._socket: AcceptedSocket | None = None
        self._server: ServerEnd | None = None
        self.runner: LocalRunner | None = None

    @property
    def about(self) -> RunnerAbout:
        found = this_machine(self._settings.state_dir, self._settings.state_dir.name)
        return msgspec.structs.replace(found, **self._given)

    async def link(self) -> None:
        """Dial in; returns when the server has taken it."""
        self.runner, workspaces = await machine_of(self._settings)
        listening, dialling = await self._link.enter_async_context(socket_pair())
        server, end = ServerEnd(listening, BEAT), RunnerEnd(dialling, BEAT, self.runner, workspaces)
        self._link.push_async_callback(workspaces.close)
        self._socket, self._server = listening, server
        self._ends = [asyncio.create_task(server.run()), asyncio.create_task(end.run())]
        await self._runners.linked(self.about, server.runner, server.workspaces)

    def deafen(self) -> None:
        """Let the server hear nothing of it any more."""
        assert self._socket is not None
        self._socket.connection.transport.pause_reading()

    def calls(self, session_id: str) -> list[Entry]:
        """What the first agent of a session was asked for."""
        return read_calls(self._settings.state_dir / "keepers" / f"{session_id}.1")

    async def cut(self) -> None:
        """Lose the link without a word; agents work on."""
        if self._socket is None or self._server is None:
            return
        self._socket.connection.transport.abort()
        await asyncio.gather(*self._ends, return_exceptions=True)
        await self._server.finish()
        await self._runners.unlinked(self.about.id, self._server.runner)
        self._socket = self._server = None
        await self._link.aclose()

    async def close(self) -> None:
        """End what runs there."""
        with suppress(LinkLost):
            await self.cut()
        runner, workspaces = await machine_of(self._settings)
        for survivor in await runner.surviving():
            await runner.discard(survivor)
        await runner.close()
        await workspaces.close()


class Fleet:
    """One server and its hosts."""

    def __init__(self, services: Services, api: httpx.AsyncClient, folder: Path) -> None:
        self.services = services
        self.api = api
        self._folder = folder
        self._hosts: list[Host] = []

    @property
    def runners(self) -> Runners:
        return self.services.runners

    async def host(self, name: str, **about: Any) -> Host:
        """One more machine, linked."""
        host = Host(self.runners, self._folder / name, **about)
        self._hosts.append(host)
        await self._register(host.about)
        await host.link()
        return host

    async def _register(self, about: RunnerAbout) -> None:
        """The server knows its key, as that of every runner that dials in."""
        keys, now = self.services.sessions.store.runner_keys, self.services.clock.now()
        if about.id not in {key.runner for key in await keys.all()}:
            token = RunnerToken(id=new_id("rtk"), hash=about.id, labels={}, uses=1, expires_at=None, created_at=now)
            await keys.add_token(token)
            await keys.register(
                about.id, RunnerKey(runner=about.id, hash=about.id, name=about.name, labels={}, created_at=now)
            )

    def let_go(self, host: Host) -> None:
        """Leave a machine, and what runs there, to the next server."""
        self._hosts.remove(host)

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.api.post(path, json=body)
        assert answer.status_code < 300, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def session(self, session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"/sessions/{session_id}")).json()
        return found

    async def events(self, session_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            offset = found[-1]["sequence"] if found else 0
            page = (await self.api.get(f"/sessions/{session_id}/events?offset={offset}&limit=500")).json()
            found += page["events"]
            if not page["hasMore"]:
                return found

    async def lines(self, session_id: str) -> list[str]:
        """What the log says to operators."""
        return [event["data"]["message"] for event in await self.events(session_id) if event["type"] == "log"]

    async def until(self, session_id: str, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait until a session is as it should be."""
        async with asyncio.timeout(stretched(60)):
            while not condition(found := await self.session(session_id)):
                await asyncio.sleep(0.02)
        assert condition(found), what
        return found

    async def close(self) -> None:
        for host in self._hosts:
            await host.close()


@asynccontextmanager
async def fleet_in(folder: Path, **more: Any) -> AsyncIterator[Fleet]:
    """A server on a state folder in this process, without its port; its own runner is linked like any other."""
    settings = settings_of(folder / "server", **more)
    os.environ.setdefault("HOME", str(folder))
    server = await make_server(settings)
    await server.start()
    transport = httpx.ASGITransport(app=build_app(server.services))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/api/v1", timeout=60) as api:
        fleet = Fleet(server.services, api, folder)
        try:
            yield fleet
        finally:
            await fleet.close()
            await server.stop(keep_agents=False)
