"""A random run against a cluster: `python -m tests.chaos.cluster.cluster_run`, alone in its namespaces; see long.py."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random

from tests.chaos.chaos_run import told
from tests.chaos.cluster.cluster_checker import call_witness, check_cluster
from tests.chaos.cluster.members import BUG, TOKEN, Member
from tests.chaos.cluster.orders import Orders
from tests.chaos.cluster.place import Place, open_place
from tests.chaos.crowd import Crowd, Plan
from tests.chaos.victim import leavings, ours

_FAR = 3600
_TWICE = 0.25


class ClusterRun(Crowd):
    """One run against one cluster."""

    def __init__(self, plan: Plan, place: Place) -> None:
        super().__init__(plan, place.url, place.agents, TOKEN)
        self.place = place
        self.orders = Orders(self.caller, self.history)
        self._dice = Random(f"{plan.seed} killer")
        self._kinds: Mapping[str, Callable[[], Awaitable[None]]] = {
            "server": self._kill_server,
            "link": self._cut_runner,
            "agent": self._kill_agent,
            "postgres": self._stop_postgres,
            "runner": self._kill_runner,
            "frozen server": self._freeze_server,
            "keeper": self._kill_keeper,
            "bad link": self._disturb,
            "temporal": self._kill_temporal,
            "cut server": self._cut_server,
        } | ({"clock": self._bend_clock} if place.clock is not None else {})

    async def play(self, *, tasks: bool) -> None:
        """Work, harm, heal; what is left is for the checker."""
        await self.client.system.health()
        over = asyncio.Event()
        async with self.orders.listening():
            ordering = asyncio.create_task(self.orders.order(over) if tasks else asyncio.sleep(0))
            await self.work(self._harm)
            over.set()
            await ordering
            await self.come_to_rest()
            await self.orders.come_to_an_end()
        await self.readers_catch_up()
        await self.end_all()

    async def _harm(self) -> None:
        """The next in turn; now and then two at once."""
        names = [self._next(), self._next()] if self._dice.random() < _TWICE else [self._next()]
        begun = time.monotonic()
        await asyncio.gather(*(self._kinds[name]() for name in names))
        print(f"  {self.history.kills.total():3} {' + '.join(names)} {time.monotonic() - begun:.1f} s", flush=True)

    def _next(self) -> str:
        name = list(self._kinds)[self.history.kills.total() % len(self._kinds)]
        self.history.kills[name] += 1
        return name

    async def _pause(self, most: float) -> None:
        await asyncio.sleep(self._dice.uniform(0.05, most))

    async def _back(self, member: Member) -> None:
        member.kill()
        await self._pause(1.0)
        await member.start()

    async def _kill_server(self) -> None:
        await self._back(self._dice.choice(self.place.servers))

    async def _kill_runner(self) -> None:
        await self._back(self._dice.choice(self.place.runners))

    async def _kill_agent(self) -> None:
        self._kill_one_of_agents(keeper=False)

    async def _kill_keeper(self) -> None:
        self._kill_one_of_agents(keeper=True)

    def _kill_one_of_agents(self, *, keeper: bool) -> None:
        agents = [kept for kept in self.place.agents() if kept.has_spoken]
        if agents:
            chosen = min(agents, key=lambda kept: (self.history.losses[kept.session], kept.folder))
            self.history.losses[chosen.session] += 1
            os.kill(chosen.keeper if keeper else chosen.pid, signal.SIGKILL)

    async def _stop_postgres(self) -> None:
        await asyncio.to_thread(self.place.postgres.stop)
        await self._pause(4.0)  # longer than a server may be silent
        await asyncio.to_thread(self.place.postgres.start)

    async def _kill_temporal(self) -> None:
        await asyncio.to_thread(self.place.temporal.kill)
        await self._pause(2.0)
        await asyncio.to_thread(self.place.temporal.start)

    async def _freeze_server(self) -> None:
        server = self._dice.choice(self.place.servers)
        server.freeze()
        try:
            await self._pause(5.0)  # its runners go elsewhere, and it knows nothing of it
        finally:
            server.thaw()

    async def _cut_runner(self) -> None:
        await self._cut(self._dice.choice(self.place.runners))

    async def _cut_server(self) -> None:
        await self._cut(self._dice.choice(self.place.servers))

    async def _cut(self, member: Member) -> None:
        member.machine.cut()
        try:
            await self._pause(4.0)
        finally:
            member.machine.mend()

    async def _disturb(self) -> None:
        machine = self._dice.choice([*self.place.servers, *self.place.runners]).machine
        machine.disturb()
        try:
            await self._pause(5.0)
        finally:
            machine.mend()

    async def _bend_clock(self) -> None:
        assert self.place.clock is not None
        self.place.clock.jump(self._dice.choice([-_FAR, _FAR]))
        await self._pause(4.0)
        self.place.clock.jump(0)


async def play(plan: Plan, folder: Path, *, tasks: bool) -> list[str]:
    """One run on a new cluster; gives the violations."""
    known = ours()
    async with open_place(folder) as place:
        await call_witness(place.database)
        run = ClusterRun(plan, place)
        run.add_people()
        try:
            await run.play(tasks=tasks)
        finally:
            await run.close()
            print(f"chaos: cluster: {told(run)}; {len(run.orders.ordered)} tasks", flush=True)
        for member in (*place.runners, *place.servers):
            await member.stop()
        violations = await check_cluster(place.database, [runner.state_dir for runner in place.runners], run.history)
    return violations + await leavings(known)


def main(arguments: list[str]) -> int:
    """Play one run; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="tests.chaos.cluster.cluster_run")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--resume-after", type=int, default=0, help="a seeded bug of the plain reader")
    parser.add_argument("--tasks", action="store_true", help="order tasks as well")
    options = parser.parse_args(arguments)
    plan = Plan(
        seed=options.seed,
        seconds=0,
        kills=options.kills,
        sessions=options.sessions,
        resume_after=options.resume_after,
        rest_seconds=20 if BUG else 90,
    )
    violations = asyncio.run(play(plan, options.folder, tasks=options.tasks))
    print("\n".join(violations), flush=True)
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
