"""The suite's agents: pinned packages of the registries, installed once into a cache and then used again."""

import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ostler.agents.adapter import Adapter
from ostler.agents.sources import Npm, Pypi
from ostler.base.errors import InstallFailed
from ostler.conformance.stage import Programs
from ostler.conformance.suite import Suite
from ostler.runner.installs.installer import Installer, installable
from ostler.runner.installs.platforms import this_platform
from ostler.runner.installs.toolbox import Progress

ROOT = Path(__file__).resolve().parents[1]
_AT_ONCE = 3


@dataclass(frozen=True, kw_only=True)
class Search:
    """Where the suite's runners find their agents."""

    programs: Programs
    installer: Installer
    failed: dict[str, InstallFailed] = field(default_factory=dict)

    def suite(self, adapter: Adapter, *, also_unclaimed: bool = False) -> Suite:
        """The suite for an agent; fails if the agent could not be installed: to skip it would say nothing."""
        if error := self.failed.get(adapter.info.id):
            raise error
        return Suite.of(adapter, self.programs, also_unclaimed=also_unclaimed)

    def install(self, adapters: Iterable[Adapter], progress: Progress) -> None:
        """Install what is not there yet."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda adapter: self._install(adapter, progress), adapters))

    def _install(self, adapter: Adapter, progress: Progress) -> None:
        name, started = adapter.info.id, time.monotonic()
        if not installable(adapter.sources):
            return
        try:
            self.installer.install(
                name,
                [source for source in adapter.sources if isinstance(source, Npm | Pypi)],
                version=pinned(adapter),
                progress=lambda line: progress(f"{name}: {line} ({time.monotonic() - started:.0f} s)"),
            )
        except InstallFailed as error:
            self.failed[name] = error
            progress(str(error))


def pinned(adapter: Adapter) -> str | None:
    """The version of the first registry source; naming it makes it beat a program on the PATH."""
    for source in adapter.sources:
        match source:
            case Npm():
                return next(iter(source.packages.values()))
            case Pypi():
                return source.version
            case _:
                pass
    return None


def cached_agents() -> Search:
    """The cache of this checkout, or the one that OSTLER_AGENT_CACHE names; the real home is never looked at."""
    cache = Path(os.environ.get("OSTLER_AGENT_CACHE") or ROOT / ".cache" / "agents")
    home = cache / "home"
    home.mkdir(parents=True, exist_ok=True)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    environ = {**os.environ, "HOME": str(home)}
    installer = Installer(cache, environ=environ, search=folders, platform=this_platform())
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return Search(programs=Programs(search=folders, environ=kept, installer=installer), installer=installer)
