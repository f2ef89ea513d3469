"""Which version of an agent Ostler was tested with, and what to say about another one."""

import re
from collections.abc import Sequence
from typing import Literal, assert_never

from ostler.agents.sources import Builtin, Download, Npm, OnPath, Pypi, Source
from ostler.runner.installs.npm import numbers

_VERSION = re.compile(r"\d+\.\d")


def tested_version(sources: Sequence[Source]) -> str | None:
    """The pinned version of its packages; None if nothing is pinned."""
    pins = (pin for pin in map(_pinned, sources) if pin is not None)
    return next((pin for pin in pins if _VERSION.match(pin)), None)


def _pinned(source: Source) -> str | None:
    match source:
        case Npm():
            return next(iter(source.packages.values()))
        case Pypi():
            return source.version
        case Builtin() | Download() | OnPath():
            return None
        case _:
            assert_never(source)


def start_hint(agent: str, version: str | None, tested: str | None) -> str:
    """What to do about an agent that did not start, if its version may be why; empty if not."""
    if (age := _age(version, tested)) is None:
        return ""
    return (
        f" Its version is {version}, {age} than {tested}, with which Ostler was tested: "
        f"`ostler agents install {agent} --version {tested}` installs that one."
    )


def version_hint(agent: str, version: str | None, tested: str | None) -> str | None:
    """What to know about a version that is not the tested one; None if it is, or if nobody can tell."""
    if (age := _age(version, tested)) is None:
        return None
    return (
        f"{agent} {version} is {age} than {tested}, with which Ostler was tested. If something goes wrong, "
        f"`ostler agents install {agent} --version {tested}` installs that one."
    )


def newer_hint(agent: str, version: str | None, tested: str | None) -> str | None:
    """The same about a version that came after the tested one; None for any other."""
    return version_hint(agent, version, tested) if _age(version, tested) == "newer" else None


def _age(version: str | None, tested: str | None) -> Literal["older", "newer"] | None:
    if tested is None or version is None or numbers(version) == numbers(tested):
        return None
    return "older" if numbers(version) < numbers(tested) else "newer"
