"""Reads devcontainer.json, a stranger's file: the part that makes a container is understood, and every value checked.

What becomes a word or a field of the engine's command must match a pattern, so that none can be an option, a second
field or a place of the host.
"""

import re
from typing import Annotated, Any

import msgspec
import pyjson5

from ostler.base.errors import Unprocessable

USUAL_PATHS = (".devcontainer/devcontainer.json", ".devcontainer.json")
MOST_BYTES = 100_000
_MOST_NESTED = 20
_TEXT = Annotated[str, msgspec.Meta(min_length=1)]
_EXPANDED = re.compile(r"\$\{(localWorkspaceFolder|containerWorkspaceFolder)(Basename)?\}")

_IMAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?(/[A-Za-z0-9][A-Za-z0-9._-]*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,128})?"
)
_LOCAL_TRANSPORTS = frozenset(
    {"containers-storage", "dir", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sif", "tarball"}
)
"""What podman would read from the host's disk instead of a registry."""
_FOLDER = re.compile(r"(/[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*)+")
_OF_THE_ENGINE = frozenset({"dev", "etc", "proc", "run", "sys"})
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?")
_STAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_PATH = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,1000}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]{0,30000}")
_COMMAND = re.compile(r"[^\x00\ud800-\udfff]{1,60000}")


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """How an image is made."""

    dockerfile: _TEXT
    context: str = "."
    target: str | None = None
    args: dict[str, str] = msgspec.field(default_factory=dict)


class DevcontainerFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What we take from the file; everything else, such as mounts and runArgs, is left to other tools."""

    image: _TEXT | None = None
    build: Build | None = None
    docker_file: _TEXT | None = None
    workspace_folder: _TEXT | None = None
    container_user: str | None = None
    remote_user: str | None = None
    container_env: dict[str, str] = msgspec.field(default_factory=dict)
    remote_env: dict[str, str | None] = msgspec.field(default_factory=dict)
    post_create_command: str | tuple[str, ...] | dict[str, Any] | None = None
    docker_compose_file: Any = None

    @property
    def user(self) -> str | None:
        """Whom processes run as."""
        return self.remote_user or self.container_user

    @property
    def env(self) -> dict[str, str]:
        """Variables of the container."""
        return {**self.container_env, **{name: value for name, value in self.remote_env.items() if value is not None}}


def parse(data: bytes, path: str) -> DevcontainerFile:
    """Read the file; raises Unprocessable with what is wrong in it."""
    if len(data) > MOST_BYTES:
        raise Unprocessable(reason=f"{path} is larger than {MOST_BYTES} bytes. Make it smaller.")
    try:
        found = msgspec.convert(pyjson5.decode(data.decode(), _MOST_NESTED), DevcontainerFile)
    except pyjson5.Json5Exception as error:
        raise Unprocessable(reason=f"{path} cannot be read: {error.args[0]}.") from error
    except ValueError as error:  # no UTF-8, a number without end, or not what msgspec expects
        raise Unprocessable(reason=f"{path} cannot be read: {str(error)[:300]}.") from error
    if found.docker_compose_file is not None:
        raise Unprocessable(
            reason=f"{path} uses docker compose, which is not supported. Name an image or a Dockerfile."
        )
    if found.docker_file and found.build is None:
        found = msgspec.structs.replace(found, build=Build(dockerfile=found.docker_file))
    if found.image is None and found.build is None:
        raise Unprocessable(reason=f"{path} names neither an image nor a Dockerfile.")
    _check(found, path)
    return found


def _check(found: DevcontainerFile, path: str) -> None:
    if found.image is not None:
        check_image(found.image, path)
    for user in filter(None, (found.container_user, found.remote_user)):
        check_user(user, path)
    for name in (*found.container_env, *found.remote_env):
        _must(_VARIABLE, name, f"{path}: containerEnv or remoteEnv", "Use letters, digits and _ in a variable's name.")
    for value in found.env.values():
        check_value(value, path)
    if found.build is not None:
        _check_build(found.build, path)
    commands(found.post_create_command, path)


def _check_build(build: Build, path: str) -> None:
    _must(_PATH, build.dockerfile, f"{path}: build.dockerfile", "Give a path in the repository.")
    _must(_PATH, build.context, f"{path}: build.context", "Give a path in the repository.")
    if build.target is not None:
        _must(_STAGE, build.target, f"{path}: build.target", "Give the name of a stage.")
    for name, value in build.args.items():
        _must(_VARIABLE, name, f"{path}: build.args", "Use letters, digits and _ in a variable's name.")
        _must(_VALUE, value, f"{path}: build.args.{name}", "Give one line of text.")


def check_image(image: str, path: str) -> None:
    """Raise unless it is the name of an image in a registry or in the engine's store."""
    field, advice = f"{path}: image", "Give one such as registry.example/name:tag."
    _must(_IMAGE, image[:501], field, advice)
    if len(image) > 500 or re.split("[:/]", image, maxsplit=1)[0] in _LOCAL_TRANSPORTS:
        raise Unprocessable(reason=f"{field}: '{image[:80]}' is not the name of an image. {advice}")


def check_user(user: str, path: str) -> None:
    """Raise unless it is the name or number of a user, and perhaps of a group."""
    _must(_USER, user, f"{path}: remoteUser or containerUser", "Give one such as dev or 1000:1000.")


def check_value(value: str, path: str) -> None:
    """Raise unless the value of a variable is one line of text."""
    _must(_VALUE, value, f"{path}: containerEnv or remoteEnv", "Give one line of text.")


def check_folder(folder: str, path: str) -> None:
    """Raise unless it is a plain folder of the container that is not the engine's own."""
    field, advice = f"{path}: workspaceFolder", "Give one such as /workspaces/project."
    _must(_FOLDER, folder[:501], field, advice)
    if len(folder) > 500 or folder.split("/")[1] in _OF_THE_ENGINE:
        raise Unprocessable(reason=f"{field}: '{folder[:80]}' cannot be the workspace's folder. {advice}")


def commands(given: object, path: str) -> list[tuple[str, ...]]:
    """What postCreateCommand says, as words; they are only ever run inside the container."""
    found: list[tuple[str, ...]] = []
    match given:
        case str():
            found = [("sh", "-c", given)]
        case tuple() | list():
            found = [tuple(map(str, given))] if given else []
        case dict():
            found = [words for each in given.values() for words in commands(each, path)]
        case _:
            pass
    for word in (word for words in found for word in words):
        _must(_COMMAND, word, f"{path}: postCreateCommand", "Give a command or a list of words.")
    return found


def _must(pattern: re.Pattern[str], value: str, field: str, advice: str) -> None:
    if not pattern.fullmatch(value):
        raise Unprocessable(reason=f"{field}: {value[:80]!r} cannot be used. {advice}")


def expanded(value: str, host: str, inside: str) -> str:
    """A value with the folders that it names put in."""

    def folder(found: re.Match[str]) -> str:
        path = host if found[1] == "localWorkspaceFolder" else inside
        return path.rstrip("/").rpartition("/")[2] if found[2] else path

    return _EXPANDED.sub(folder, value)
