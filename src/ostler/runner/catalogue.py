"""What can run on this machine: looked up when somebody asks, and reported when something changes."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter, Installation, Ready
from ostler.agents.coverage import coverage_of
from ostler.base.casing import camel
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.link.protocol import Registry
from ostler.runner.execution.dialogue import Counts
from ostler.runner.installs.finder import Finder
from ostler.runner.installs.tested_versions import tested_version, version_hint
from ostler.runner.installs.versions import Versions
from ostler.runner.runtimes.credentials import Found, find_credentials
from ostler.wire.agents import Agent, Command, Coverage

log = Log(__name__)
_LAST_REPORT_SECONDS = 5.0


class Catalogue:
    """Describes the agents of a runner."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        *,
        environ: Mapping[str, str],
        finder: Finder,
        versions: Versions,
        progress: Callable[[str], str | None],
        counts: Mapping[str, Counts],
        logged_in: Callable[[Adapter], bool],
        shares: Callable[[Adapter], bool],
    ) -> None:
        """`progress` is the last thing an installation of an agent said; `shares` is whether its sessions share one."""
        self._adapters = adapters
        self._environ = environ
        self._finder = finder
        self._versions = versions
        self._progress = progress
        self._counts = counts
        self._logged_in = logged_in
        self._shares = shares
        self._reported_logins: dict[str, bool] = {}
        self._offers: dict[str, Ready] = {}
        self._commands: dict[str, tuple[Command, ...]] = {}
        self._registry: Registry | None = None
        self._reports = Background(log, "agent.not_reported")

    async def register(self, registry: Registry) -> None:
        """Report what is known without running or reading anything: only the versions that we installed."""
        self._registry = registry
        await registry.offered([self._reported(adapter) for adapter in self._adapters])

    def report(self, adapter: Adapter) -> None:
        """Tell the server about an agent that has changed, beside everything else."""
        if self._registry is not None:
            self._reports.spawn(self._registry.offered([self._reported(adapter)]), agent=adapter.info.id)

    def report_login(self, adapter: Adapter) -> None:
        """Tell the server about an agent if it has got a login, or has none any more."""
        if self._reported_logins.get(adapter.info.id) != self._logged_in(adapter):
            self.report(adapter)

    def _reported(self, adapter: Adapter) -> Agent:
        found = self._finder.find(adapter)
        described = self._description(adapter, found, found.version if found else None, ())
        self._reported_logins[adapter.info.id] = described.logged_in
        return described

    def heard(self, adapter: Adapter, ready: Ready | None) -> None:
        """Take what an agent said when it was ready, such as the models it offers."""
        if ready is not None:
            before = self._offers.get(adapter.info.id, Ready())
            self._offers[adapter.info.id] = ready
            if (before.models, before.modes) != (ready.models, ready.modes):
                self.report(adapter)

    def take_commands(self, adapter: Adapter, commands: tuple[Command, ...]) -> None:
        """Take the commands that a process of an agent offers."""
        if self._commands.get(adapter.info.id) != commands:
            self._commands[adapter.info.id] = commands
            self.report(adapter)

    async def close(self) -> None:
        """Report nothing more."""
        self._registry = None
        await self._reports.aclose(seconds=_LAST_REPORT_SECONDS)

    async def all(self) -> list[Agent]:
        """Every agent."""
        return await asyncio.gather(*map(self.describe, self._adapters))

    async def describe(self, adapter: Adapter) -> Agent:
        """One agent."""
        found = self._finder.find(adapter)
        version = await self._versions.of(found) if found else None
        return self._description(adapter, found, version, await asyncio.to_thread(self.credentials, adapter))

    def _description(
        self, adapter: Adapter, found: Installation | None, version: str | None, credentials: Sequence[Found]
    ) -> Agent:
        info, shares = adapter.info, self._shares(adapter)
        offer = self._offers.get(info.id, Ready())
        tested = tested_version(adapter.sources)
        return Agent(
            id=info.id,
            type=info.id,
            name=info.name,
            aliases=info.aliases,
            installed=found is not None,
            versions=_distinct(version, *self._finder.versions(adapter)),
            capabilities=msgspec.structs.replace(info.capabilities, shared_process=True)
            if shares
            else info.capabilities,
            coverage={**_coverage(info.id), "sharedProcess": "converted"} if shares else _coverage(info.id),
            modes=offer.modes or info.modes,
            models=offer.models or info.models,
            limits=info.limits,
            tools=info.tools,
            client_tools=info.client_tools,
            code_tools=info.code_tools,
            system_prompt=info.system_prompt() if info.system_prompt is not None else None,
            continues_turns=info.continues_turns,
            commands=self._commands.get(info.id),
            settings_schema_ref=f"/api/v1/schemas/agents/{info.id}.json",
            credentials_available=tuple(credential.name for credential in credentials),
            credential_names=tuple(credential.name for credential in adapter.credentials),
            logged_in=self._logged_in(adapter),
            version=version,
            path=found.path if found else None,
            install_hint=None if found else f"ostler agents install {info.id}",
            tested_version=tested,
            version_hint=version_hint(info.id, version, tested),
            installing=self._progress(info.id),
            unparsed_frames=self._counts[info.id].unparsed,
        )

    def credentials(self, adapter: Adapter) -> tuple[Found, ...]:
        """What the host can log in to an agent with."""
        home = self._environ.get("HOME")
        return find_credentials(adapter.credentials, environ=self._environ, home=Path(home) if home else None)


@functools.cache
def _coverage(agent: str) -> dict[str, Coverage]:
    return {camel(name): how for name, how in coverage_of(agent).items()}


def _distinct(*versions: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(version for version in versions if version is not None))
