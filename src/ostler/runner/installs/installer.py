"""Installs agents from their sources: whole or not at all, once at a time, in bounded time."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import assert_never

import msgspec

from ostler.agents.adapter import Installation
from ostler.agents.sources import Download, Npm, Pypi, Source
from ostler.base.errors import InstallFailed, Stopping, VersionNotOffered
from ostler.runner.installs import pypi
from ostler.runner.installs.installed import InstalledVersions, Record
from ostler.runner.installs.npm import Node, Packages, machine_node, wheel_node
from ostler.runner.installs.toolbox import ChecksumWrong, Progress, SourceFailed, Stopped, Toolbox

Installable = Download | Npm | Pypi
_VERSION = re.compile(r"[0-9A-Za-z][\w.+-]*")
_NEWEST = "newest"
_DOWNLOAD = "download"


class Built(msgspec.Struct, frozen=True):
    """What a source made in a staging folder."""

    version: str
    program: Path
    interpreter: tuple[str, ...] = ()


Build = Callable[[Path, int], Built]
"""Builds in this folder, under the lock with this descriptor."""


def _in_silence(_: str) -> None:
    """Nobody wants to know."""


def installable(sources: Sequence[Source]) -> tuple[Installable, ...]:
    """The sources that something can be installed from."""
    return tuple(source for source in sources if isinstance(source, Installable))


class Installer:
    """Owns one folder of programs; blocks, so call it in a thread."""

    def __init__(
        self,
        root: Path,
        *,
        environ: Mapping[str, str],
        search: Sequence[str],
        platform: str,
        seconds: float = 900.0,
        connect_seconds: float = 5.0,
        mirror: str | None = None,
    ) -> None:
        self._root = root
        self._environ = environ
        self._search = search
        self._platform = platform
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        self._mirror = mirror

    def records(self, agent: str) -> list[Record]:
        """The versions of an agent that are installed, the current one first."""
        return self._versions(agent).records()

    def current(self, agent: str, *, downloaded: bool = False) -> Installation | None:
        """How to run the current version, or the newest that is the vendor's own binary."""
        versions = self._versions(agent)
        found = [each for each in versions.records() if not downloaded or each.source == _DOWNLOAD]
        return next(map(versions.installation, found), None)

    def install(
        self,
        agent: str,
        sources: Sequence[Source],
        *,
        version: str | None = None,
        anew: bool = False,
        progress: Progress = _in_silence,
        stop: Event | None = None,
    ) -> Installation:
        """Install from the first source that works, or find that it is there already; raises InstallFailed.

        `anew` replaces what is there, which stays until its successor is whole.
        """
        if version is not None and not _VERSION.fullmatch(version):
            here = next((record.version for record in self.records(agent)), "none")
            raise VersionNotOffered(agent=agent, version=version[:100], installed=here)
        box = Toolbox(self._environ, self._search, seconds=self._seconds, stop=stop or Event(), progress=progress)
        failures = []
        ordered = self._likeliest_first(agent, installable(sources), version)
        for source in ordered:
            try:
                share = box if source is ordered[-1] else box.share()
                return self._from(agent, source, version, share, anew=anew)
            except SourceFailed as error:
                failures.append(f"{_kind(source)}: {error}")
                progress(f"not from {_kind(source)}: {error}")
            except (ChecksumWrong, OSError) as error:
                raise InstallFailed(agent=agent, reason=f"{error}. Nothing was installed.") from error
            except Stopped as error:
                raise Stopping from error
        raise InstallFailed(agent=agent, reason=_reason(failures))

    def _likeliest_first(
        self, agent: str, sources: Sequence[Installable], version: str | None
    ) -> Sequence[Installable]:
        """A source that has given this version before needs no network, so it goes first."""
        known = {record.source for record in self.records(agent) if record.wanted == version}
        return sorted(sources, key=lambda source: _kind(source) not in known)

    def _from(self, agent: str, source: Installable, version: str | None, box: Toolbox, *, anew: bool) -> Installation:
        build = partial(self._build, source, version, box)
        wanted = version or _pin(source)
        chosen = version is not None or anew
        return self._ensure(agent, _kind(source), wanted, build, box, chosen=chosen, anew=anew)

    def _build(self, source: Installable, version: str | None, box: Toolbox, content: Path, lock: int) -> Built:
        match source:
            case Download():
                from ostler.runner.installs.download import Vendor  # noqa: PLC0415 - its HTTP client would slow every start

                box.progress("asking the vendor for its binary")
                seconds, mirror = self._connect_seconds, self._mirror
                vendor = Vendor(source, self._platform, box, connect_seconds=seconds, mirror=mirror)
                built = Built(*vendor.build(content, version))
                box.progress("trying it")
                box.see_it_start(built.program, content.parent, lock=lock)
                return built
            case Npm():
                packages = Packages(source, self._platform)
                return Built(*packages.build(content, version, box, lock, lambda needs: self._node(needs, box)))
            case Pypi():
                wanted = version or source.version
                return Built(wanted, pypi.Python(self._uv(box), box, lock).build(content, source, wanted))
            case _:
                assert_never(source)

    def _ensure(
        self,
        name: str,
        source: str,
        wanted: str,
        build: Build,
        box: Toolbox,
        *,
        chosen: bool = False,
        anew: bool = False,
    ) -> Installation:
        """The installed program; built first if it is not there, or wanted anew."""
        versions = self._versions(name)
        with versions.locked(box.wait_for_others) as lock:
            for record in () if anew else versions.records():
                if (record.source, record.wanted) == (source, wanted):
                    versions.choose(msgspec.structs.replace(record, chosen=chosen or record.chosen))
                    return versions.installation(record)
            with versions.staging() as staging:
                content = staging / "content"
                content.mkdir()
                built = build(content, lock)
                record = Record(
                    version=built.version,
                    source=source,
                    wanted=wanted,
                    path=str(built.program.relative_to(content)),
                    interpreter=built.interpreter,
                    chosen=chosen,
                )
                versions.put(content, record)
        return versions.installation(record)

    def _versions(self, name: str) -> InstalledVersions:
        return InstalledVersions(self._root / name)

    # Tools

    def _node(self, needs: str | None, box: Toolbox) -> Node:
        """The machine's Node, or one of our own where it is missing or too old."""
        if (found := machine_node(box, needs)) is not None:
            return found
        uv = self._uv(box)

        def build(content: Path, lock: int) -> Built:
            return Built(pypi.NODE_VERSION, pypi.Python(uv, box, lock).build_node(content))

        made = self._ensure("node", "pypi", pypi.NODE_VERSION, build, box)
        return wheel_node(Path(made.path).parents[2])

    def _uv(self, box: Toolbox) -> tuple[str, ...]:
        if (found := pypi.find_uv(box)) is not None:
            return found

        def build(content: Path, lock: int) -> Built:
            return Built(_NEWEST, pypi.build_uv(content, box, lock))

        return self._ensure("uv", "pypi", _NEWEST, build, box).command


def _pin(source: Installable) -> str:
    match source:
        case Download():
            return source.version or _NEWEST
        case Npm():
            return next(iter(source.packages.values()))
        case Pypi():
            return source.version
        case _:
            assert_never(source)


def _kind(source: Installable) -> str:
    match source:
        case Download():
            return _DOWNLOAD
        case Npm():
            return "npm"
        case Pypi():
            return "pypi"
        case _:
            assert_never(source)


def _reason(failures: Sequence[str]) -> str:
    if not failures:
        return "put its program on the PATH of the server."
    return f"{'; '.join(failures)}. Check the network, or put its program on the PATH of the server."
