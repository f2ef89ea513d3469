"""Finds the programs of agents: named in the settings, ours, on the PATH, or installed by us. Runs nothing."""

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import assert_never

from ostler.agents.adapter import Adapter, Installation
from ostler.agents.sources import Builtin, Download, Npm, OnPath, Pypi, Source
from ostler.runner.installs.installer import Installer


class Finder:
    """Knows where to look."""

    def __init__(
        self, search: Sequence[str], *, installer: Installer | None = None, named: Mapping[str, Sequence[str]]
    ) -> None:
        self.search = search
        self._path = os.pathsep.join(search)
        self._installer = installer
        self._named = named

    def find(self, adapter: Adapter) -> Installation | None:
        """The program named in the settings, a version somebody chose, or the first of the sources that is there."""
        agent = adapter.info.id
        if command := self._named.get(agent):
            return self._command(command)
        if self._installer is not None and any(record.chosen for record in self._installer.records(agent)[:1]):
            return self._installer.current(agent)
        found = (self._at(source, agent) for source in adapter.sources)
        return next(filter(None, found), None)

    def versions(self, adapter: Adapter) -> tuple[str, ...]:
        """The versions we installed, the current one first."""
        records = self._installer.records(adapter.info.id) if self._installer else []
        return tuple(record.version for record in records)

    def _node(self) -> str | None:
        made = self._installer.current("node") if self._installer else None
        return made.path if made else None

    def _command(self, command: Sequence[str]) -> Installation | None:
        path = shutil.which(command[0], path=self._path)
        return Installation(path=path, command=(path, *command[1:])) if path else None

    def _at(self, source: Source, agent: str) -> Installation | None:
        match source:
            case Builtin():
                path = shutil.which(source.program, path=self._path)
                command = (path,) if path else source.command
                return Installation(path=command[-1], command=command, version=source.version, node=self._node())
            case OnPath():
                return self._command((source.program,))
            case Download():
                return self._installer.current(agent, downloaded=True) if self._installer else None
            case Npm() | Pypi():
                return self._installer.current(agent) if self._installer else None
            case _:
                assert_never(source)
