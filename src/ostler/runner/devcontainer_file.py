"""Reads devcontainer.json: JSON with comments, of which the part that makes a container is understood."""

import re
from typing import Annotated, Any

import msgspec

from ostler.base.errors import Unprocessable

USUAL_PATHS = (".devcontainer/devcontainer.json", ".devcontainer.json")
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)
_NAME = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
_VARIABLE = re.compile(r"\$\{(localWorkspaceFolder|containerWorkspaceFolder)(Basename)?\}")


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """How an image is made."""

    dockerfile: _NAME
    context: str = "."
    target: str | None = None
    args: dict[str, str] = msgspec.field(default_factory=dict)


class DevcontainerFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What we take from the file; everything else is left to other tools."""

    image: _NAME | None = None
    build: Build | None = None
    docker_file: str | None = None
    workspace_folder: str | None = None
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


def parse(text: str, path: str) -> DevcontainerFile:
    """Read the file; raises Unprocessable with what is wrong in it."""
    try:
        found = msgspec.json.decode(_plain(text), type=DevcontainerFile)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Unprocessable(reason=f"{path} cannot be read: {error}.") from error
    if found.docker_compose_file is not None:
        raise Unprocessable(
            reason=f"{path} uses docker compose, which is not supported. Name an image or a Dockerfile."
        )
    if found.docker_file and found.build is None:
        found = msgspec.structs.replace(found, build=Build(dockerfile=found.docker_file))
    if found.image is None and found.build is None:
        raise Unprocessable(reason=f"{path} names neither an image nor a Dockerfile.")
    return found


def _plain(text: str) -> str:
    """Without comments and trailing commas; texts stay as they are."""
    return _TOKEN.sub(lambda found: found[0] if found[0].startswith('"') else "", text)


def expanded(value: str, host: str, inside: str) -> str:
    """A value with the folders that it names put in."""

    def folder(found: re.Match[str]) -> str:
        path = host if found[1] == "localWorkspaceFolder" else inside
        return path.rstrip("/").rpartition("/")[2] if found[2] else path

    return _VARIABLE.sub(folder, value)
