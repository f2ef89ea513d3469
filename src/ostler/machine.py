"""What runs agents on this machine, put together from settings: a server has it, or a runner that dials in."""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from ostler.agents import ADAPTERS
from ostler.agents.acp import AcpAdapter
from ostler.agents.adapter import Adapter, Login
from ostler.agents.sources import Builtin
from ostler.base import failpoints
from ostler.base.errors import SettingsError
from ostler.base.setting_groups.tables import AgentSetting
from ostler.base.settings import Settings
from ostler.link.provisioner import Provisioner
from ostler.runner.execution.limits import Limits
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.platforms import this_platform
from ostler.runner.local import LocalRunner
from ostler.runner.local_workspaces import LocalWorkspaces
from ostler.runner.runtimes.container_engines import Engines
from ostler.runner.runtimes.credentials import Found, find_credentials
from ostler.runner.runtimes.devcontainer import DevcontainerRuntime
from ostler.runner.runtimes.local import LocalRuntime
from ostler.runner.runtimes.memories import Memories
from ostler.runner.runtimes.registry import Runtimes
from ostler.runner.runtimes.runtime import Runtime
from ostler.runner.session_folders import SessionFolders
from ostler.runner.setups import Setups
from ostler.runner.starting.starter import Starter
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import options_from

_SYSTEM_PREFIXES = ("/", "/usr", "/usr/local")


def arm_failpoint(environ: Mapping[str, str]) -> None:
    """Have this process die, fail or wait where a test wants it to."""
    text = environ.get("OSTLER_FAILPOINT")
    try:
        failpoints.arm(text)
    except ValueError as error:
        raise SettingsError(name="OSTLER_FAILPOINT", value=text, reason=str(error)) from error


async def made_workspaces(settings: Settings, *, is_own: bool = False, runner: str | None = None) -> LocalWorkspaces:
    """The workspaces of this machine; `is_own` if nobody else can order some, `runner` if it is not a server's."""
    environ = dict(os.environ)
    options = options_from(settings, environ, is_own=is_own, runner=runner)
    library = await WorkspaceLibrary.open(settings.state_dir / "workspaces", environ=environ, options=options)
    starter = Starter(Runtimes(_runtimes(settings, library, environ), settings.runtimes))
    return LocalWorkspaces(
        library,
        policy=options.policy,
        starter=starter,
        memories=Memories(settings.state_dir / "memories"),
        sessions=SessionFolders(settings.state_dir),
        setups=Setups(
            library,
            settings.state_dir / "setups",
            starter,
            environ=environ,
            seconds=settings.setup_timeout_seconds,
        ),
        remote_memory=frozenset(adapter.info.id for adapter in ADAPTERS if adapter.info.remote_memory),
    )


def _runtimes(settings: Settings, library: WorkspaceLibrary, environ: Mapping[str, str]) -> tuple[Runtime, ...]:
    programs = (settings.state_dir / "agents", Path(__file__).parent, *_packages(), *_python())
    return (
        DevcontainerRuntime(library, settings.state_dir / "containers", environ=environ, programs=programs),
        LocalRuntime(library, settings.runtimes, environ),
    )


def _packages() -> Iterator[Path]:
    """What agents that ship with us import, wherever it is installed."""
    sources = (source for adapter in ADAPTERS for source in adapter.sources)
    names = {name for source in sources if isinstance(source, Builtin) for name in source.packages}
    for name in sorted(names):
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)


def _python() -> Iterator[Path]:
    """The Python that runs us, for containers that have none that fits; one of the system cannot be taken along."""
    prefix = Path(sys.base_prefix).resolve()
    if str(prefix) not in _SYSTEM_PREFIXES:
        yield prefix


def made_provisioner(settings: Settings) -> Provisioner:
    """What makes hosts for more runners."""
    from ostler.runner.provisioners.podman import Podman  # noqa: PLC0415  most servers make none

    return Podman(Engines(settings.state_dir / "pools", dict(os.environ)))


def made_runner(settings: Settings, workspaces: LocalWorkspaces, *, freeze_after: float = 0.0) -> LocalRunner:
    """The runner of this machine; when it has let go of its agents another one takes its place.

    So many seconds after that they stand still, if others may have their sessions then.
    """
    limits = Limits(
        start_timeout=settings.agent_start_timeout_seconds,
        turn_timeout=settings.turn_timeout_seconds,
        interrupt_grace=settings.interrupt_grace_seconds,
        stop_grace=settings.stop_grace_seconds,
        max_frame_bytes=settings.max_frame_bytes,
        max_item_length=settings.max_item_length,
        max_output=settings.max_output_bytes,
        max_idle_output=settings.max_idle_output_bytes,
        patience=settings.orphan_timeout_seconds,
        freeze_after=freeze_after,
    )
    environ = dict(os.environ)
    search = environ.get("PATH", os.defpath).split(os.pathsep)
    runner = LocalRunner(
        (*ADAPTERS, *custom_agents(settings)),
        folder=settings.state_dir,
        environ=environ,
        search=search,
        limits=limits,
        installer=_installer(settings, environ, search),
        named=named_programs(settings),
        auto_install=settings.auto_install,
        share_credentials=settings.share_credentials,
        warm=settings.warm_agents,
        shared=_shared_agents(settings),
        workspaces=workspaces,
    )
    runner.start()
    return runner


def _installer(settings: Settings, environ: Mapping[str, str], search: list[str]) -> Installer:
    return Installer(
        settings.state_dir / "agents",
        environ=environ,
        search=search,
        platform=this_platform(),
        seconds=settings.install_timeout_seconds,
        mirror=settings.release_mirror,
    )


def _known_agents() -> dict[str, Adapter]:
    return {name: adapter for adapter in ADAPTERS for name in (adapter.info.id, *adapter.info.aliases)}


def _shared_agents(settings: Settings) -> tuple[str, ...]:
    able = tuple(adapter.info.id for adapter in ADAPTERS if adapter.info.can_share)
    if unable := [name for name in settings.shared_agents if name not in able]:
        reason = f"no process of this agent can serve several sessions. Possible: {', '.join(able)}."
        raise SettingsError(name="shared_agents", value=unable[0], reason=reason)
    return settings.shared_agents


def custom_agents(settings: Settings) -> list[Adapter]:
    """Agents that exist only in the settings; all they have to do is speak ACP."""
    known = _known_agents()
    given = (settings.agents or {}).items()
    return [_custom_agent(name, agent) for name, agent in given if name not in known]


def _custom_agent(name: str, agent: AgentSetting) -> Adapter:
    login = Login(files=agent.login_files, command=agent.login, status=agent.login_status)
    return AcpAdapter.custom(name, agent.words, agent.env, login=login, key=agent.key)


def named_programs(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Commands that the settings name for agents we know."""
    known = _known_agents()
    return {known[name].info.id: agent.words for name, agent in (settings.agents or {}).items() if name in known}


def host_credentials(environ: Mapping[str, str], home: Path | None) -> dict[str, tuple[Found, ...]]:
    """What each agent could log in with on this machine, by agent."""
    found = {adapter.info.id: find_credentials(adapter.credentials, environ=environ, home=home) for adapter in ADAPTERS}
    return {agent: credentials for agent, credentials in found.items() if credentials}
