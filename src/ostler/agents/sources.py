"""Where the programs of agents come from, as data; `runner/installs/installer.py` does what it says."""

from typing import Literal

import msgspec


class Builtin(msgspec.Struct, frozen=True, kw_only=True):
    """A program that ships with Ostler; one of this name on the PATH stands in for it."""

    program: str
    command: tuple[str, ...]
    version: str
    packages: tuple[str, ...] = ()
    """Packages of Python that it imports, which containers must see."""


class OnPath(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is already on the machine."""

    program: str


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's own binary, by address."""

    version_url: str
    """Answers with the newest version as text, or as JSON with `tag_name`; what is before its first digit is cut."""
    url: str
    """With {version}, as digits such as 1.2.3, and {platform}; a tag's prefix belongs here, as in v{version}."""
    platforms: dict[str, str]
    """Our name of a platform (linux-x64, linux-x64-musl, linux-arm64, darwin-arm64, darwin-x64) -> the vendor's."""
    archive: Literal["none", "tar.gz", "zip"] = "none"
    program: str
    """The program's path inside the archive, with {platform}; it may be a pattern such as */bin/agent."""
    version: str | None = None
    """The version to install if none is wanted; absent for the newest."""
    checksums: dict[str, str] = {}
    """The SHA-256 of that version's files, by our name of the platform; they need no answer of the vendor."""
    checksum_url: str | None = None
    """Answers with the SHA-256, with {version} and {platform}: JSON by platform or file name, or lines of sha256sum."""


class Npm(msgspec.Struct, frozen=True, kw_only=True):
    """Packages of the npm registry, installed without running their scripts."""

    packages: dict[str, str]
    """Name -> version; names may hold {platform}, such as linux-x64. The first one names the agent's version."""
    program: str
    """Path below node_modules, with {platform}; it may be a pattern such as @vendor/agent-{platform}/*/bin/agent."""
    needs_node: str | None = None
    """Smallest version of Node that runs the program, or None if it is a binary."""
    platforms: dict[str, str] = {}
    """Our name of a platform -> the one in package names, where they differ."""


class Pypi(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the Python index, in an environment of its own."""

    package: str
    version: str
    python: str
    """Version of Python it needs, such as 3.12."""
    program: str
    """Name of its command."""


Source = Builtin | OnPath | Download | Npm | Pypi
