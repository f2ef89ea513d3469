"""Where a case plays: one agent under the real runner, with a scripted model on loopback and a home of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ostler.agents.adapter import Adapter
from ostler.conformance.driven import Driven
from ostler.conformance.model import ScriptedModel
from ostler.conformance.scripts import scripted
from ostler.conformance.sink import PATIENCE, AskSink
from ostler.conformance.world import LiveWorld, World
from ostler.runner.execution.limits import Limits
from ostler.runner.installs.installer import Installer
from ostler.runner.local import LocalRunner
from ostler.wire.providers import Provider, ProviderType
from ostler.wire.running import AgentSpec

_LIMITS = Limits(
    start_timeout=PATIENCE, turn_timeout=PATIENCE, interrupt_grace=6, stop_grace=2, max_frame_bytes=64 * 2**20
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of the suite: how its model is reached, and what cannot be asked of it."""

    provider: ProviderType | None = None
    model: str | None = None
    service: type[ScriptedModel] = ScriptedModel
    """The model, or a whole service around it."""
    variables: Callable[[str], dict[str, str]] = lambda _: {}
    """What the agent's environment says about the service, by its address."""
    variant: str = "high"
    """An effort it offers."""
    script: Callable[[Sequence[str]], str] = scripted
    """How the lines of a script are put into a prompt."""
    alone: bool = False
    """Whether several of it at once disturb each other."""
    without: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Behaviours that the suite cannot show with it, each with the reason."""


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """Where the programs of agents are found, and the few variables they see."""

    search: Sequence[str]
    environ: Mapping[str, str]
    installer: Installer | None = None
    named: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)


class Stage(Protocol):
    """What a case gets; the same stage again has the same home and workspace."""

    @property
    def variant(self) -> str:
        """An effort that the agent offers."""

    @property
    def unparsed(self) -> list[str]:
        """What was wrong with frames of its agents that nobody understood."""

    def agent(self, **fields: Any) -> AbstractAsyncContextManager[Driven]:
        """A running agent, in a session made with these fields of an AgentSpec."""


class LiveStage:
    """A stage in a folder, with the real program."""

    def __init__(
        self, adapter: Adapter, row: Row, programs: Programs, folder: Path, *, patience: float = PATIENCE
    ) -> None:
        self._adapter = adapter
        self._row = row
        self._programs = programs
        self._folder = folder
        self._patience = patience
        self._sinks: list[AskSink] = []

    @property
    def unparsed(self) -> list[str]:
        """What was wrong with frames of its agents that nobody understood."""
        return [error for sink in self._sinks for error in sink.unparsed]

    @property
    def variant(self) -> str:
        """An effort that the agent offers."""
        return self._row.variant

    @asynccontextmanager
    async def agent(self, **fields: Any) -> AsyncIterator[Driven]:
        """Start the agent; it is gone when the block ends."""
        cwd = self._folder / "workspace"
        await asyncio.to_thread(cwd.mkdir, parents=True, exist_ok=True)
        runner = self._runner()
        with self._row.service() as model:
            sink = AskSink(patience=self._patience)
            self._sinks.append(sink)
            try:
                connection = await runner.connect(self._spec(cwd, model.url, fields), sink)
                sink.connection = connection
                yield Driven(connection, sink, self.world(model), self._row.script, process=len(self._sinks))
            finally:
                await runner.close()

    def world(self, model: ScriptedModel) -> World:
        """What the agent does beside its events."""
        return LiveWorld(self._folder, model)

    def _runner(self) -> LocalRunner:
        programs = self._programs
        return LocalRunner(
            [self._adapter],
            folder=self._folder,
            environ=programs.environ,
            search=programs.search,
            limits=_LIMITS,
            installer=programs.installer,
            named=programs.named,
            auto_install=False,
        )

    def _spec(self, cwd: Path, url: str, fields: dict[str, Any]) -> AgentSpec:
        row = self._row
        chosen: dict[str, Any] = {
            "session_id": "ses_1",
            "agent": self._adapter.info.id,
            "start": 1,
            "cwd": str(cwd),
            "home": str(self._folder / "home"),
            "env": row.variables(url),
            "permission_mode": "default",
            "model": row.model,
            "provider": Provider(type=row.provider, base_url=url, api_key="sk-test") if row.provider else None,
            **fields,
        }
        return AgentSpec(**chosen)
