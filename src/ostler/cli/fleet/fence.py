"""A fence: every follower gets the files of one snapshot of the leader's folder, by rsync over ssh or by the relay."""

import asyncio
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from ostler.base.ids import new_id
from ostler.cli.fleet.copies import MARK
from ostler.cli.fleet.socks import VARIABLE
from ostler.client.aio import AsyncClient, AsyncSession
from ostler.client.errors import OstlerApiError
from ostler.wire.connecting import SignalOrder, SocksAccess, SyncOrder
from ostler.wire.events import HostExited, HostLog
from ostler.wire.fleets import Follower

_PIECE = 4 * 2**20
_SSH_PORT = 22


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one follower."""

    host: str
    state: str
    took_ms: int
    message: str | None = None


class FenceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How it is done."""

    folder: Path
    seconds: float
    everything: bool = False
    """Also what git ignores."""
    remote_folder: str | None = None
    ssh_user: str | None = None
    ssh_options: tuple[str, ...] = ()
    hub: SocksAccess | None = None
    """The proxy to go by, if it is not the server's."""


class Fence:
    """One fence of a session."""

    def __init__(self, client: AsyncClient, session: AsyncSession, options: FenceOptions) -> None:
        self._client = client
        self._session = session
        self._options = options

    async def make(self, followers: Sequence[Follower]) -> list[Fenced]:
        """Make all of them equal to the folder as it is now; what does not answer in time is told."""
        with _one_at_a_time(self._session.id) as store:
            snapshot = store / "files"
            await asyncio.to_thread(_take, self._options.folder, snapshot, everything=self._options.everything)
            name = await asyncio.to_thread(_name_of, snapshot)
            async with self._ways(followers, snapshot, store) as ways:
                await self._session.ingest([{"type": "fenceStarted", "snapshotId": name}])
                found = await asyncio.gather(*(self._reach(each, ways[each.name]) for each in followers))
            hosts = {each.host: _reported(each) for each in found}
            await self._session.ingest([{"type": "fenceResult", "snapshotId": name, "hosts": hosts}])
            return list(found)

    async def _reach(self, follower: Follower, way: Callable[[], Any]) -> Fenced:
        begun = time.monotonic()
        state, message = "consistent", None
        try:
            async with asyncio.timeout(self._options.seconds or None):
                await way()
        except TimeoutError:
            state, message = "timeout", f"not done after {self._options.seconds:g} seconds"
        except OstlerApiError as error:
            state, message = "unreachable", error.detail
        except click.ClickException as error:
            state, message = "failed", error.message
        took = int((time.monotonic() - begun) * 1000)
        return Fenced(host=follower.name, state=state, took_ms=took, message=message)

    @asynccontextmanager
    async def _ways(
        self, followers: Sequence[Follower], snapshot: Path, store: Path
    ) -> AsyncIterator[dict[str, Callable[[], Any]]]:
        """How each is reached: by ssh if it has registered an address for it, else by the relay."""
        access = await self._proxy()
        ports = _ssh_ports(access.names) if access is not None else {}
        by_relay = _Archive(snapshot)

        def way(follower: Follower) -> Callable[[], Any]:
            if access is not None and follower.name in ports:
                return lambda: self._rsync(follower, snapshot, ssh, access, ports[follower.name])
            return lambda: self._send(follower, by_relay)

        with _ssh_config(self._options.ssh_options, store / "known_hosts") as ssh:
            try:
                yield {each.name: way(each) for each in followers}
            finally:
                by_relay.close()

    async def _proxy(self) -> SocksAccess | None:
        if self._options.hub is not None:
            return self._options.hub
        try:
            return await self._client.followers.proxy(self._session.id)
        except OstlerApiError as error:
            if error.code == "socks_off":
                return None
            raise

    async def _rsync(self, follower: Follower, snapshot: Path, ssh: Path, access: SocksAccess, port: int) -> None:
        where = self._place(follower)
        mine = next((each for each in follower.sessions if each.session_id == self._session.id), None)
        user = self._options.ssh_user or (mine.ssh_user if mine is not None else None)
        login = f"{user}@{follower.name}" if user else follower.name
        filters = [f"--filter=P /{MARK}", *_filters(self._options.everything)]
        process = await asyncio.create_subprocess_exec(
            *("rsync", "-a", "--delete-after", *filters),
            *("-e", f"ssh -F {shlex.quote(str(ssh))} -p {port}", f"{snapshot}/", f"{login}:{where}/"),
            env={**os.environ, VARIABLE: access_words(access)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, output = await process.communicate()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            raise click.ClickException(_last_line(output) or f"rsync ended with {process.returncode}")

    def _place(self, follower: Follower) -> str:
        mine = next((each for each in follower.sessions if each.session_id == self._session.id), None)
        if self._options.remote_folder:
            return self._options.remote_folder
        if mine is None or not mine.folder:
            raise click.ClickException(
                f"it has no copy to write to. Start it with an empty --folder, or with --overwrite (no {MARK})"
            )
        return mine.folder

    async def _send(self, follower: Follower, archive: "_Archive") -> None:
        """By the relay: an archive, which the follower unpacks."""
        self._place(follower)
        run, offset = f"fence-{new_id('run')}", self._session.seen
        await self._client.followers.order(self._session.id, follower.name, SyncOrder(run=run))
        try:
            async for piece in archive.pieces():
                await self._client.followers.input(self._session.id, follower.name, piece, run=run)
            await self._client.followers.input(self._session.id, follower.name, b"", run=run)
            await self._unpacked(run, offset)
        except asyncio.CancelledError:  # its time is over
            kill = SignalOrder(run=run, signal="KILL")
            with suppress(OstlerApiError):
                await self._client.followers.order(self._session.id, follower.name, kill)
            raise

    async def _unpacked(self, run: str, offset: int) -> None:
        output = ""
        events = self._client.events.stream(self._session.id, offset=offset)
        try:
            async for event in events:
                match event:
                    case HostLog(data=data) if data.run == run:
                        output += data.message
                    case HostExited(data=data) if data.run == run:
                        if data.code:
                            raise click.ClickException(_last_line(output.encode()) or f"it ended with {data.code}")
                        return
                    case _:
                        pass
        finally:
            await events.aclose()
        raise click.ClickException("the session ended")


class _Archive:
    """The snapshot as one file, made when the first follower needs it."""

    def __init__(self, snapshot: Path) -> None:
        self._snapshot = snapshot
        self._file: IO[bytes] | None = None
        self._lock = asyncio.Lock()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Its bytes."""
        async with self._lock:
            if self._file is None:
                self._file = await asyncio.to_thread(self._made)
        at, number = 0, self._file.fileno()
        while piece := await asyncio.to_thread(os.pread, number, _PIECE, at):
            at += len(piece)
            yield piece

    def _made(self) -> IO[bytes]:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the fence
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1, format=tarfile.PAX_FORMAT) as tar:
            tar.add(self._snapshot, arcname=".")
        file.flush()
        return file

    def close(self) -> None:
        """Forget it."""
        if self._file is not None:
            self._file.close()


@contextmanager
def _one_at_a_time(session: str) -> Iterator[Path]:
    """Where snapshots of a session are kept from fence to fence, so that the next one copies only what changed."""
    import fcntl  # noqa: PLC0415 - a leader runs on Linux or macOS

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    store = home / "ostler" / "fences" / session
    store.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield store


def _take(folder: Path, snapshot: Path, *, everything: bool) -> None:
    if shutil.which("rsync") is None:
        raise click.ClickException("A fence needs rsync on this machine; install the package rsync.")
    filters = _filters(everything)
    done = subprocess.run(
        ["rsync", "-a", "--delete", "--delete-excluded", *filters, f"{folder}/", f"{snapshot}/"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"{folder} could not be copied: {_last_line(done.stderr)}")


def _filters(everything: bool) -> tuple[str, ...]:
    return () if everything else ("--filter=:- .gitignore",)


def _name_of(snapshot: Path) -> str:
    """The same for the same files."""
    digest = hashlib.sha256()
    for root, folders, files in os.walk(snapshot):
        folders.sort()
        for each in sorted((*files, *folders)):
            path = Path(root, each)
            found = path.lstat()
            target = str(path.readlink()) if path.is_symlink() else ""
            size, stamp = (found.st_size, found.st_mtime_ns) if each in files else (0, 0)
            digest.update(f"{path.relative_to(snapshot)}\0{found.st_mode}\0{size}\0{stamp}\0{target}\n".encode())
    return f"snap_{digest.hexdigest()[:24]}"


@contextmanager
def _ssh_config(options: Sequence[str], known_hosts: Path) -> Iterator[Path]:
    """Goes by the proxy, asks nobody, and else is as the person has it."""
    dial = shlex.join([sys.executable, "-m", "ostler", "connect", "dial"])
    lines = [
        *options,
        f"ProxyCommand {dial} %h:%p",
        "ProxyUseFdpass no",
        "BatchMode yes",
        "StrictHostKeyChecking accept-new",
        f"UserKnownHostsFile {known_hosts}",
        "ServerAliveInterval 15",
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config")
        file.write_text("Host *\n" + "".join(f"  {line}\n" for line in lines) + "Include ~/.ssh/config\n")
        yield file


def _ssh_ports(names: Sequence[str]) -> dict[str, int]:
    """Port 22 of each host that has one, or its only one."""
    found: dict[str, list[int]] = {}
    for name in names:
        host, _, port = name.rpartition(":")
        found.setdefault(host, []).append(int(port))
    return {
        host: _SSH_PORT if _SSH_PORT in ports else ports[0]
        for host, ports in found.items()
        if _SSH_PORT in ports or len(ports) == 1
    }


def access_words(access: SocksAccess) -> str:
    """What `ostler connect dial` needs to know, for its environment."""
    return msgspec.json.encode(access).decode()


def _reported(fenced: Fenced) -> dict[str, Any]:
    words: dict[str, Any] = {"state": fenced.state, "tookMs": fenced.took_ms}
    return {**words, "message": fenced.message[:4000]} if fenced.message else words


def _last_line(output: bytes) -> str:
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    wanted = [line for line in lines if "rsync error" not in line] or lines
    return wanted[-1][:1000] if wanted else ""
