"""A follower: hears orders at the relay, runs them, and says what they print until the server has it."""

import asyncio
import base64
import codecs
import getpass
import os
import platform
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx
import msgspec

from ostler.base.retry import delays
from ostler.base.tls.faults import fault_of
from ostler.cli.api import address_of, token_of
from ostler.cli.fleet.jail import Jail
from ostler.cli.root import Target
from ostler.client.http import options
from ostler.wire.fleets import IngestReceipt

_PIECE = 128 * 1024
_SILENCE = 90.0
_GRACE_SECONDS = 3.0
_LEAVE_SECONDS = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_WAITING = 32
_ORDER_SECONDS = 5.0
"""So long input waits for the order that it belongs to, which comes on another connection."""
_OURS = frozenset({"OSTLER_TOKEN", "OSTLER_HUB_TOKEN"})
_TAKEN = "follower_taken"
_OVER = frozenset({404, 409, 410})
"""Answers after which a session takes nothing any more."""


class SessionOver(Exception):
    """The session takes nothing any more."""


class Report(msgspec.Struct, frozen=True):
    """Something to say, which the server takes once."""

    what: str
    body: bytes
    run: str = ""


class Follower:
    """One machine in one session; runs one command at a time."""

    def __init__(
        self,
        server: Target,
        session: str,
        name: str,
        folder: Path,
        *,
        tags: tuple[str, ...],
        reaches_ssh: bool,
        is_copy: bool,
        jail: Jail,
    ) -> None:
        """`is_copy` says that fences may write to the folder; commands of leaders are put into the jail."""
        self._relay = f"/api/v1/relay/{quote(session)}/{quote(name)}"
        self._session = session
        self._name = name
        self._folder = folder
        self._tags = tags
        self._reaches_ssh = reaches_ssh
        self._is_copy = is_copy
        self._jail = jail
        self._address = address_of(server)
        self._http = httpx.AsyncClient(
            **options(self._address, token_of(server), 60.0, server.ca_file, project=server.project)
        )
        self._is_away = False
        self._is_taken = False
        """Whether another follower has the name by now."""
        self._instance = secrets.token_hex(16)
        self._seq: int | None = None
        """The number of the newest report; none before the server has said how far an earlier follower came."""
        self._reports: asyncio.Queue[Report] = asyncio.Queue(_WAITING)
        self._orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._runs: dict[str, asyncio.subprocess.Process | None] = {}
        """Every run that was heard of, with its process while it has one."""
        self._due: set[str] = set()
        """The runs that have not ended."""
        self._changed = asyncio.Condition()
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Follow until the leader closes it or the session is over."""
        speaking = asyncio.create_task(self._speak())
        parts = [asyncio.create_task(part) for part in (self._listen(), self._feed(), self._work())]
        closed: asyncio.Task[Any] = asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait([*parts, speaking, closed], return_when=asyncio.FIRST_COMPLETED)
            for part in (*parts, speaking):
                if part.done() and isinstance(over := part.exception(), SessionOver):
                    click.echo(str(over), err=True)
                    return
                if part.done():
                    part.result()
        finally:
            for part in (*parts, closed):
                part.cancel()
            await asyncio.gather(*parts, closed, return_exceptions=True)
            await self._leave(speaking)
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)
            await self._http.aclose()

    async def _leave(self, speaking: "asyncio.Task[None]") -> None:
        """Say what became of the runs that have not ended, and that this is a follower no longer; for a while.

        One whose name another follower has leaves it to that one.
        """
        if self._seq is None or speaking.done():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                for run in sorted(self._due):
                    await self._say("status", msgspec.json.encode({"state": "exited", "code": -1, "run": run}))
                if not self._is_taken:
                    await self._say("status", msgspec.json.encode({"state": "left"}))
                joined: asyncio.Task[Any] = asyncio.create_task(self._reports.join())
                try:
                    await asyncio.wait({joined, speaking}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    joined.cancel()

    # What it hears

    async def _listen(self) -> None:
        async for order in self._stream("control"):
            match order.get("type"):
                case "hello" if self._seq is None:
                    self._seq = int(order["lastSeq"])
                    await self._say("status", msgspec.json.encode(self._introduced()))
                    await self._reports.join()
                    click.echo(f"Following {self._session} as {self._name}.", err=True)
                case "handshake":
                    ack = {"sessionId": self._session, "host": self._name, "relayReady": True}
                    await self._post(
                        "/api/v1/connect/handshake/ack",
                        msgspec.json.encode({**ack, "sshOk": self._reaches_ssh}),
                        {},
                        {},
                    )
                case "run" | "sync" if order["run"] not in self._runs:
                    self._due.add(order["run"])
                    await self._note(order["run"], None)
                    await self._orders.put(order)
                case "signal":
                    if (process := self._runs.get(order["run"])) is not None:
                        _kill(process, getattr(signal, f"SIG{order['signal']}"))
                case "close":
                    self._closed.set()
                case _:
                    pass  # a run that is known, or an order of a newer server

    def _introduced(self) -> dict[str, Any]:
        mine = {"folder": str(self._folder.resolve()), "sshUser": getpass.getuser()} if self._is_copy else {}
        tags = [*self._tags, f"jail={self._jail.name}"]
        return {"state": "joined", "os": platform.system().lower(), "tags": tags, **mine}

    def _command(self, order: dict[str, Any]) -> list[str]:
        if order["type"] == "sync":
            return [sys.executable, "-m", "ostler", "connect", "receive", str(self._folder)]
        return self._jail.around(order["command"])

    async def _feed(self) -> None:
        seconds = _ORDER_SECONDS
        async for words in self._stream("stdin"):
            run = words.get("run")
            process = await (self._reader(seconds) if run is None else self._reader_of(run))
            if process is None or process.stdin is None:
                seconds = 0.0 if run is None else seconds  # it came too late, and so does what follows
                continue
            seconds = _ORDER_SECONDS
            with suppress(OSError):
                if data := base64.b64decode(words["data"]):
                    process.stdin.write(data)
                    await process.stdin.drain()
                if words["end"]:
                    process.stdin.close()

    async def _reader(self, seconds: float) -> asyncio.subprocess.Process | None:
        """What takes input: the command that runs, or the one that is about to begin."""
        async with self._changed:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self._due)
            await self._changed.wait_for(lambda: not self._due or any(self._runs.values()))
            return next((each for each in self._runs.values() if each is not None), None)

    async def _reader_of(self, run: str) -> asyncio.subprocess.Process | None:
        """The command of a run; None if it has ended, or is never ordered."""
        async with self._changed:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ORDER_SECONDS):
                    await self._changed.wait_for(lambda: run in self._runs)
            await self._changed.wait_for(lambda: run not in self._due or self._runs[run] is not None)
            return self._runs.get(run)

    async def _note(self, run: str, process: asyncio.subprocess.Process | None) -> None:
        self._runs[run] = process
        async with self._changed:
            self._changed.notify_all()

    async def _stream(self, what: str) -> AsyncIterator[dict[str, Any]]:
        """Messages for it, from whichever server is there."""
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                timeout = httpx.Timeout(30.0, read=_SILENCE)
                named = {"follower": self._instance}
                async with self._http.stream("GET", f"{self._relay}/{what}", params=named, timeout=timeout) as answer:
                    await self._refused(answer)
                    if answer.is_success:
                        self._is_away = False
                        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
                        async for line in answer.aiter_lines():
                            if line.startswith("data: "):
                                yield msgspec.json.decode(line[6:])
            except httpx.TransportError as error:
                self._lost(error)
            await asyncio.sleep(next(pauses))

    def _lost(self, error: httpx.TransportError) -> None:
        """Say once that the server is away; raise if it is one that is not to be trusted."""
        if (fault := fault_of(error, self._address, None)) is not None:
            raise click.ClickException(str(fault)) from error
        if not self._is_away and not isinstance(error, httpx.ReadError | httpx.RemoteProtocolError):
            self._is_away = True
            click.echo(f"{self._address} does not answer; trying again until it does.", err=True)

    async def _refused(self, answer: httpx.Response) -> None:
        """Raise for an answer that will be the same next time."""
        if 400 <= answer.status_code < 500 and answer.status_code != 429:
            await answer.aread()
            self._is_taken = _word(answer, "code") == _TAKEN
            if answer.status_code in _OVER and self._seq is not None and not self._is_taken:
                raise SessionOver(_why(answer))
            raise click.ClickException(_why(answer))

    # What it does

    async def _work(self) -> None:
        while True:
            order = await self._orders.get()
            code = await self._execute(order)
            self._due.discard(order["run"])
            await self._note(order["run"], None)
            await self._say("status", msgspec.json.encode({"state": "exited", "code": code, "run": order["run"]}))

    async def _execute(self, order: dict[str, Any]) -> int:
        run, command = order["run"], self._command(order)
        await self._say("status", msgspec.json.encode({"state": "started", "run": run}))
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._folder,
                env={**_environment(), **order.get("env", {})},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            await self._say("stderr", f"{command[0]}: {error.strerror}\n".encode(), run)
            return 127
        await self._note(run, process)
        try:
            await asyncio.gather(self._pass(process.stdout, "stdout", run), self._pass(process.stderr, "stderr", run))
            return await process.wait()
        finally:
            await _end(process)

    async def _pass(self, source: asyncio.StreamReader | None, what: str, run: str) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while source is not None and (data := await source.read(_PIECE)):
            await self._say(what, decoder.decode(data).encode(), run)
        if rest := decoder.decode(b"", final=True):
            await self._say(what, rest.encode(), run)

    async def _say(self, what: str, body: bytes, run: str = "") -> None:
        """Put something in the line; while it is long, what runs has to wait."""
        await self._reports.put(Report(what, body, run))

    async def _speak(self) -> None:
        """One report after the other, each again until the server has it."""
        while True:
            await self._report(await self._reports.get())
            self._reports.task_done()

    async def _report(self, report: Report) -> None:
        """Give it the next number; one that the server has though we never sent it is of another follower's report."""
        params = {"run": report.run} if report.run else {}
        kind = "application/json" if report.what == "status" else "text/plain"
        while True:
            self._seq = (self._seq or 0) + 1
            sent = {"event-sequence": str(self._seq), "content-type": kind}
            answer, tries = await self._post(f"{self._relay}/{report.what}", report.body, sent, params)
            receipt = msgspec.json.decode(answer.content, type=IngestReceipt)
            if tries > 1 or not receipt.duplicates:
                return
            self._seq = max(receipt.last_seq.values())

    async def _post(
        self, path: str, body: bytes, sent: dict[str, str], params: dict[str, str]
    ) -> tuple[httpx.Response, int]:
        """The answer, and at which try it came."""
        pauses, tries = delays(_FIRST_PAUSE, _LONGEST_PAUSE), 0
        while True:
            tries += 1
            with suppress(httpx.TransportError):
                answer = await self._http.post(
                    path, content=body, params=params, headers={"content-type": "application/json", **sent}
                )
                await self._refused(answer)
                if answer.is_success:
                    return answer, tries
            await asyncio.sleep(next(pauses))


def _environment() -> dict[str, str]:
    """What commands of others may know."""
    return {name: value for name, value in os.environ.items() if name not in _OURS}


def _why(answer: httpx.Response) -> str:
    return _word(answer, "detail") or f"The server refused with {answer.status_code}: {answer.text[:300]}"


def _word(answer: httpx.Response, name: str) -> str | None:
    try:
        return str(msgspec.json.decode(answer.content)[name])
    except (msgspec.DecodeError, KeyError, TypeError):
        return None


async def _end(process: asyncio.subprocess.Process) -> None:
    """End all that a command started: TERM, then KILL."""
    if _kill(process, signal.SIGTERM):
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await process.wait()
    _kill(process, signal.SIGKILL)


def _kill(process: asyncio.subprocess.Process, number: signal.Signals) -> bool:
    """Signal its whole group; False if nothing of it is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
        return True
    return False
