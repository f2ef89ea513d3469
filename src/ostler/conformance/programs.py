"""Which agent a name means, and where its program is, as the settings of a machine say."""

import os
from collections.abc import Mapping, Sequence

from ostler.agents import ADAPTERS
from ostler.agents.acp import AcpAdapter
from ostler.agents.adapter import Adapter
from ostler.base.errors import AgentNotInstalled, UnsupportedAgent
from ostler.base.settings import Settings
from ostler.conformance.stage import Programs
from ostler.runner.installs.finder import Finder
from ostler.runner.installs.installer import Installer
from ostler.runner.installs.platforms import this_platform

_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ")
"""All that an agent under test sees of the real environment."""


def adapter_of(name: str, settings: Settings, command: Sequence[str] = ()) -> Adapter:
    """The agent of that name; a name nobody knows is an agent that speaks ACP, if there is a command for it."""
    known = {alias: adapter for adapter in ADAPTERS for alias in (adapter.info.id, *adapter.info.aliases)}
    custom = settings.agents or {}
    if name in known:
        return known[name]
    if command or name in custom:
        words = tuple(command) or custom[name].words
        return AcpAdapter.custom(name, words, custom[name].env if name in custom else None)
    names = dict.fromkeys([*(adapter.info.id for adapter in ADAPTERS), *custom])
    raise UnsupportedAgent(agent=name, known=", ".join(names))


def programs_of(
    adapter: Adapter, settings: Settings, environ: Mapping[str, str], command: Sequence[str] = ()
) -> Programs:
    """Where an agent's program is: the command given, that of the settings, or where the server would find it.

    Raises AgentNotInstalled.
    """
    search = environ.get("PATH", os.defpath).split(os.pathsep)
    chosen = (settings.agents or {}).get(adapter.info.id)
    words = tuple(command) or (chosen.words if chosen else ())
    installer = Installer(settings.state_dir / "agents", environ=environ, search=search, platform=this_platform())
    named = {adapter.info.id: words} if words and not _is_custom(adapter) else {}
    if Finder(search, installer=installer, named=named).find(adapter) is None:
        raise AgentNotInstalled(agent=adapter.info.id, looked_in=", ".join(search))
    visible = {name: environ[name] for name in _VARIABLES if name in environ}
    return Programs(search=search, environ=visible, installer=installer, named=named)


def _is_custom(adapter: Adapter) -> bool:
    return all(adapter.info.id != known.info.id for known in ADAPTERS)
