"""What sessions without credentials of their own log in with: variables they get, and files that they share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ostler.agents.adapter import Adapter, Launch
from ostler.base.clock import SystemClock
from ostler.link.protocol import Sink
from ostler.runner.logins.stored import StoredLogin, StoredLogins, Verdict
from ostler.runner.runtimes.credentials import Found, find_credentials
from ostler.wire.agents import LoginMethod
from ostler.wire.events import ErrorData, TurnEndedData
from ostler.wire.running import AgentExit, AgentSpec, Connected, Draft


class SharedLogins:
    """One login for each agent; what a session brings along goes before it."""

    def __init__(self, stored: StoredLogins, environ: Mapping[str, str], *, share: bool) -> None:
        """`share` lets every agent have what is found on the machine, unless something else was chosen for it."""
        self._stored = stored
        self._environ = environ
        self._share = share

    def given(self, adapter: Adapter, spec: AgentSpec) -> AgentSpec:
        """The spec with what its agent logs in with."""
        if spec.provider is not None or self._is_own(adapter, spec):
            return spec
        variables = self._with_addresses(adapter, self.variables(adapter))
        if any(credential.name in spec.env for credential in adapter.credentials):
            return msgspec.structs.replace(spec, env={**variables, **spec.env})
        by: Literal["file", "variable"] | None = "file" if self.files(adapter) else "variable" if variables else None
        return msgspec.structs.replace(spec, env={**variables, **spec.env}, shared_login=by)

    def linked(self, adapter: Adapter, spec: AgentSpec, launch: Launch) -> Launch:
        """The start with the files of a login that the session shares."""
        if launch.shared is not None:  # who logs in is the process that it shares
            return msgspec.structs.replace(launch, shared=self.linked(adapter, spec, launch.shared))
        files = self.files(adapter) if spec.shared_login == "file" else {}
        links = {file: files.get(file) for file in adapter.info.login.files}
        return msgspec.structs.replace(launch, links=links) if links else launch

    def watched(self, adapter: Adapter, spec: AgentSpec, sink: Sink) -> Sink:
        """The sink of a session, which notes whether what is stored here lets its agent in."""
        stored = self._stored.read(adapter.info.id)
        if stored is None or spec.provider is not None or self._is_own(adapter, spec):
            return sink
        return _Watch(sink, self, adapter.info.id)

    def note(self, agent: str, verdict: Verdict, by: str, login: StoredLogin | None = None) -> None:
        """Remember what was seen of a login."""
        stored = login or self._stored.read(agent)
        if stored is not None and (stored.verdict != verdict or login is not None):
            seen = msgspec.structs.replace(stored, verdict=verdict, by=by, at=SystemClock().now())
            self._stored.write(agent, seen)

    def _is_own(self, adapter: Adapter, spec: AgentSpec) -> bool:
        """Whether a session brings something along that takes the place of what was chosen for its agent."""
        chosen = self._stored.read(adapter.info.id) is not None
        return chosen and any(credential.name in spec.env for credential in adapter.credentials)

    def method(self, agent: str) -> LoginMethod | None:
        """What was chosen for an agent."""
        stored = self._stored.read(agent)
        return stored.method if stored is not None else "machine" if self._share else None

    def is_there(self, adapter: Adapter) -> bool:
        """Whether a session gets something to log in with here."""
        return bool(self.variables(adapter) or self.files(adapter))

    def variables(self, adapter: Adapter) -> dict[str, str]:
        """What is handed over as variables; nothing is copied out of a file that is shared as a whole."""
        stored = self._stored.read(adapter.info.id)
        if stored is not None and stored.method == "key" and stored.key and stored.variable:
            return {stored.variable: stored.key}
        if self.method(adapter.info.id) != "machine":
            return {}
        shared = {f"file ~/{file}" for file in self.files(adapter)}
        return {found.name: found.value for found in self.found(adapter) if found.source not in shared}

    def _with_addresses(self, adapter: Adapter, variables: dict[str, str]) -> dict[str, str]:
        """A key of the machine goes where the machine sends it, and nowhere else."""
        if self.method(adapter.info.id) != "machine":
            return variables
        names = [each.address for each in adapter.credentials if each.address and each.name in variables]
        return {**{name: self._environ[name] for name in names if self._environ.get(name)}, **variables}

    def files(self, adapter: Adapter) -> dict[str, str]:
        """The files of a login -> where they really are."""
        method = self.method(adapter.info.id)
        home = self._stored.home(adapter.info.id) if method == "subscription" else None
        if method == "machine":
            home = self.own_home
        if home is None:
            return {}
        return {file: str(home / file) for file in adapter.info.login.files if (home / file).exists()}

    def found(self, adapter: Adapter) -> tuple[Found, ...]:
        """The credentials on this machine."""
        return find_credentials(adapter.credentials, environ=self._environ, home=self.own_home)

    @property
    def own_home(self) -> Path | None:
        """The home of whoever runs the runner."""
        home = self._environ.get("HOME")
        return Path(home) if home else None


class _Watch:
    """Implements Sink; the session's own gets everything."""

    def __init__(self, sink: Sink, logins: SharedLogins, agent: str) -> None:
        self._sink = sink
        self._logins = logins
        self._agent = agent

    async def connected(self, report: Connected) -> None:
        await self._sink.connected(report)

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        for draft in drafts:
            if isinstance(draft.data, ErrorData) and draft.data.code == "auth":
                self._logins.note(self._agent, "refused", "a turn")
            elif isinstance(draft.data, TurnEndedData) and draft.data.outcome == "completed":
                self._logins.note(self._agent, "accepted", "a turn")
        await self._sink.deliver(drafts, step)

    async def closed(self, end: AgentExit) -> None:
        await self._sink.closed(end)
