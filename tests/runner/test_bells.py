"""Keepers that ring are all heard, alone at once and many together."""

import asyncio
import socket
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from ostler.runner.processes.bells import Bells
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import Command, Process
from tests.support.patience import until

ROUNDS = 20
FAST = """
import os, time
for number in range(1000):
    os.write(1, b"word %d\\n" % number)
    soon = time.perf_counter() + 0.0003
    while time.perf_counter() < soon:
        pass
"""


class Rings:
    """Sockets that ring; each is counted."""

    def __init__(self, bells: Bells, count: int) -> None:
        self.heard: Counter[int] = Counter()
        self._bells = bells
        self._pairs = [socket.socketpair() for _ in range(count)]
        for number, (ours, _) in enumerate(self._pairs):
            bells.add(ours.fileno(), partial(self._hear, number))

    def _hear(self, number: int) -> None:
        self.heard[number] += len(self._pairs[number][0].recv(4096))

    def ring(self) -> None:
        for _, theirs in self._pairs:
            theirs.send(b"\n")

    def close(self) -> None:
        for ours, theirs in self._pairs:
            self._bells.remove(ours.fileno())
            ours.close()
            theirs.close()


async def test_every_ring_is_heard_however_many_come_at_once() -> None:
    rings = Rings(Bells(), 100)
    for _ in range(ROUNDS):
        rings.ring()
        await asyncio.sleep(0)
    await until(lambda: rings.heard == Counter(dict.fromkeys(range(100), ROUNDS)))
    rings.close()


async def test_bells_can_be_listened_to_again_after_the_last_was_removed() -> None:
    bells = Bells()
    for _ in range(3):
        await _ring_once(Rings(bells, 10))


async def _ring_once(rings: Rings) -> None:
    rings.ring()
    await until(lambda: rings.heard.total() == 10)
    rings.close()


async def test_a_bell_that_was_removed_while_others_are_gathered_is_not_heard() -> None:
    bells = Bells()
    many, one = Rings(bells, 50), Rings(bells, 1)
    many.ring()
    await until(lambda: many.heard.total() == 50)
    one.ring()
    one.close()
    many.ring()
    await until(lambda: many.heard.total() == 100)
    assert not one.heard
    many.close()


async def test_what_goes_wrong_with_one_agent_makes_nobody_deaf_for_the_others() -> None:
    bells = Bells()
    ours, theirs = socket.socketpair()
    many, faults = Rings(bells, 50), 0

    def fail() -> None:
        nonlocal faults
        faults += 1
        ours.recv(4096)
        raise RuntimeError("its spool cannot be read")

    bells.add(ours.fileno(), fail)
    for number in range(1, ROUNDS):
        theirs.send(b"\n")
        many.ring()
        await until(lambda number=number: many.heard.total() == 50 * number)  # type: ignore[misc]  # bound at once
    assert faults > 1
    bells.remove(ours.fileno())
    ours.close()
    theirs.close()
    many.close()


async def test_an_agent_that_talks_fast_is_heard_in_bunches(nursery: NurseryHandle) -> None:
    command = Command(argv=[sys.executable, "-I", "-S", "-c", FAST], env={}, cwd="/")
    wakes: list[bytes] = []
    processes: list[Process] = []

    def hear() -> None:
        for process in processes:
            while chunk := process.read():
                wakes.append(chunk)

    process = await Process.start(nursery, command, Path(tempfile.mkdtemp()), hear, patience=0)
    processes.append(process)
    await until(lambda: process.is_gone)
    hear()
    assert b"".join(wakes).split() == b" ".join(b"word %d" % number for number in range(1000)).split()
    assert len(wakes) < 500
    process.release()
