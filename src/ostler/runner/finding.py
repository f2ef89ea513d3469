"""Finds the programs of agents: ours, on the PATH, or installed by us."""

import os
import shutil
from collections.abc import Sequence
from typing import assert_never

from ostler.agents.adapter import Adapter, Installation
from ostler.agents.sources import Builtin, Download, Npm, OnPath, Pypi, Source


def find(adapter: Adapter, search: Sequence[str]) -> Installation | None:
    """The first of an agent's sources that is there; runs nothing."""
    found = (_find(source, search) for source in adapter.sources)
    return next(filter(None, found), None)


def _find(source: Source, search: Sequence[str]) -> Installation | None:
    match source:
        case Builtin():
            path = shutil.which(source.program, path=os.pathsep.join(search))
            command = (path,) if path else source.command
            return Installation(path=command[-1], command=command, version=source.version)
        case OnPath():
            path = shutil.which(source.program, path=os.pathsep.join(search))
            return Installation(path=path, command=(path,)) if path else None
        case Download() | Npm() | Pypi():
            return None
        case _:
            assert_never(source)
