"""A whole cluster: PostgreSQL, Temporal, three servers and three runners on machines of their own, nginx in front."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.chaos.cluster.members import TOKEN, Clock, RunnerMember, ServerMember
from tests.chaos.victim import Kept
from tests.support.databases import Cluster, running_cluster
from tests.support.network import SWITCH, Machine, open_network
from tests.support.nginx import running_nginx
from tests.support.patience import stretched
from tests.support.temporal_server import TemporalServer, running_temporal

MEMBERS = 3
_PORTS = "10000 30000"
_FLAGS = ("--local-slots", "0", "--allowed-host", "127.0.0.1", "--stop-grace-seconds", "0.5")
_LONGEST_BEAT = 2.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """Everything that can be harmed."""

    folder: Path
    url: str
    """Where clients go."""
    database: str
    postgres: Cluster
    temporal: TemporalServer
    servers: list[ServerMember]
    runners: list[RunnerMember]
    clock: Clock | None
    """That of the last server and the last runner; None where clocks cannot be bent."""

    def agents(self) -> list[Kept]:
        """All agents that are alive."""
        return [kept for runner in self.runners for kept in runner.agents()]


@asynccontextmanager
async def open_place(folder: Path) -> AsyncIterator[Place]:
    """A new one; only for who is alone."""
    open_network()
    async with AsyncExitStack() as stack:
        for name in ("postgres", "temporal"):
            (folder / name).mkdir()
        postgres = stack.enter_context(running_cluster(folder / "postgres", SWITCH))
        temporal = stack.enter_context(running_temporal(folder / "temporal", SWITCH))
        database = postgres.new_database()
        # what has a port now may need it again: no client may have it meanwhile
        Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(_PORTS)
        clock = Clock(folder / "clock") if Clock.library() else None
        (folder / "objects").mkdir()
        shared = ("--database", database, "--object-store", f"file://{folder}/objects", "--engine", temporal.url)
        servers = await _servers(stack, folder, shared, clock)
        url = stack.enter_context(running_nginx(folder / "nginx", [server.address for server in servers]))
        runners = await _runners(stack, folder, [server.url for server in servers], clock)
        yield Place(
            folder=folder,
            url=url,
            database=database,
            postgres=postgres,
            temporal=temporal,
            servers=servers,
            runners=runners,
            clock=clock,
        )


async def _servers(
    stack: AsyncExitStack, folder: Path, flags: tuple[str, ...], clock: Clock | None
) -> list[ServerMember]:
    servers = []
    for number in range(1, MEMBERS + 1):
        machine = Machine(f"server{number}", 10 + number)
        own = clock if number == MEMBERS else None
        server = ServerMember(machine, folder / machine.name, (*flags, *_FLAGS, *_beats()), own)
        stack.push_async_callback(server.stop)
        await server.start()
        servers.append(server)
    return servers


async def _runners(stack: AsyncExitStack, folder: Path, urls: list[str], clock: Clock | None) -> list[RunnerMember]:
    """Each knows all servers, and begins with another one."""
    runners = []
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False) as http:
        for number in range(1, MEMBERS + 1):
            machine = Machine(f"runner{number}", 20 + number)
            own = clock if number == MEMBERS else None
            order = [*urls[number - 1 :], *urls[: number - 1]]
            runner = RunnerMember(machine, folder / machine.name, order, own)
            answer = await http.post(f"{urls[0]}/api/v1/runners/tokens", json={}, timeout=60)
            assert answer.status_code == 201, answer.text
            runner.token = answer.json()["token"]
            stack.push_async_callback(runner.stop)
            await runner.start()
            runners.append(runner)
    return runners


def _beats() -> tuple[str, ...]:
    """Who is silent is noticed soon, but a machine that is only busy is not silent."""
    beat = min(_LONGEST_BEAT, stretched(0.5))
    return ("--runner-beat-seconds", f"{beat:.1f}", "--server-timeout-seconds", f"{4 * beat:.1f}")
