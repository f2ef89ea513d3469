"""Hosts for runners that are containers of podman on this machine."""

import io
import tarfile
from collections.abc import Mapping

import msgspec

from ostler.link.provisioner import Host, NewHost, NotMade, Unreachable
from ostler.runner.runtimes.container_engines import ANSWER_SECONDS, WORK_SECONDS, Engines, bind

_PROGRAM = "podman"
_HOST, _SERVER, _POOL = "ostler.host", "ostler.server", "ostler.pool"
_STOP_SECONDS = 5
_CHANGE_SECONDS = 60.0
_MOST_WORDS = 400
_LAST_LINES = 5


class _Found(msgspec.Struct, frozen=True):
    """A container as podman lists it."""

    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)
    state: str = msgspec.field(name="State", default="")


_listing = msgspec.json.Decoder(list[_Found] | None)


class Podman:
    """Implements Provisioner."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    async def make(self, new: NewHost) -> None:
        """Create a container, put its files into it, and start it."""
        marks = {_HOST: new.id, _SERVER: new.server, _POOL: new.pool}
        command = (
            *("create", "--init", "--name", _name(new.id)),
            *(word for name, value in marks.items() for word in ("--label", f"{name}={value}")),
            *(("--network", new.network) if new.network is not None else ()),
            *(word for folder in new.volumes for word in bind(folder, folder, read_only=True)),
            *(new.image, *new.command),
        )
        # podman that is killed in the middle, as a helper would be, leaves layers that nobody can find
        _check("create", await self._launch(command, WORK_SECONDS))
        archive = _archive(new.files)
        _check("cp", await self._run(("cp", "-", f"{_name(new.id)}:/"), _CHANGE_SECONDS, stdin=archive))
        await self.start(new.id)

    async def start(self, host_id: str) -> None:
        """Start a container that outlives this process."""
        _check("start", await self._launch(("start", _name(host_id)), _CHANGE_SECONDS))

    async def remove(self, host_id: str) -> None:
        """Remove a container; what runs in it has a moment to end."""
        words = ("rm", "--force", "--ignore", "--time", str(_STOP_SECONDS), _name(host_id))
        code, output = await self._run(words, _CHANGE_SECONDS)
        if code != 0:
            raise Unreachable(f"podman rm: {output[-_MOST_WORDS:] or f'code {code}'}")

    async def list(self) -> dict[str, Host]:
        """Every container with our marks."""
        words = ("ps", "--all", "--filter", f"label={_HOST}", "--format", "json")
        code, output = await self._run(words, ANSWER_SECONDS)
        try:
            if code == 0:
                hosts = [_host(each) for each in _listing.decode(output or "[]") or []]
                return {host.id: host for host in hosts}
        except msgspec.MsgspecError as error:
            raise Unreachable(f"podman ps: {error}") from error
        raise Unreachable(f"podman ps: {output[-_MOST_WORDS:] or f'code {code}'}")

    async def last_words(self, host_id: str) -> str:
        """The end of its output."""
        code, output = await self._run(("logs", "--tail", str(_LAST_LINES), _name(host_id)), ANSWER_SECONDS)
        return output[-_MOST_WORDS:] if code == 0 else ""

    async def _run(self, words: tuple[str, ...], seconds: float, *, stdin: bytes | None = None) -> tuple[int, str]:
        try:
            return await self._engines.run((_PROGRAM, *words), seconds, stdin=stdin)
        except OSError as error:
            return _missing(error)

    async def _launch(self, words: tuple[str, ...], seconds: float) -> tuple[int, str]:
        try:
            return await self._engines.launch((_PROGRAM, *words), seconds)
        except OSError as error:
            return _missing(error)


def _check(what: str, done: tuple[int, str]) -> None:
    code, output = done
    if code != 0:
        raise NotMade(f"podman {what}: {output[-_MOST_WORDS:] or f'code {code}'}")


def _missing(error: OSError) -> tuple[int, str]:
    return 127, f"{_PROGRAM} cannot be started ({error.strerror or error})"


def _name(host_id: str) -> str:
    return f"ostler-{host_id}"


def _host(found: _Found) -> Host:
    labels = found.labels or {}
    running = found.state in {"running", "paused", "stopping"}
    return Host(labels.get(_HOST, ""), labels.get(_SERVER, ""), "running" if running else "stopped")


def _archive(files: Mapping[str, bytes]) -> bytes:
    """The files as podman takes them, for the user that the container runs as."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.mode, entry.size = 0o600, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()
