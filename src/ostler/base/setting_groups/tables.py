"""Settings that are tables of their own: how one agent is run, and what a pool of runners is made of."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from ostler.base.errors import SettingsError

_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_FOLDER = re.compile(r"/[^,:\"\n\r\0\\]*")
_ADDRESS = re.compile(r"https?://[^/?#@\s]+/?")


def _about(description: str) -> Meta:
    return Meta(description=description)


class AgentSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one agent is run here; a name that Ostler does not know makes a new agent that speaks ACP."""

    path: Annotated[str | None, _about("Its program, instead of the one that would be found.")] = None
    command: Annotated[tuple[str, ...], _about("Its program with arguments, instead of `path`.")] = ()
    env: Annotated[dict[str, str], _about("Variables for a new agent.")] = {}
    key: Annotated[str | None, _about("Variable that hands a new agent its key.")] = None
    login: Annotated[tuple[str, ...], _about("What a new agent's program is called with to log in.")] = ()
    login_status: Annotated[
        tuple[str, ...], _about("What it is called with to tell, by ending with 0, that it is logged in.")
    ] = ()
    login_files: Annotated[
        tuple[str, ...], _about("Files or folders below its home that a new agent's login is stored in.")
    ] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The command, however it was given."""
        return self.command or ((self.path,) if self.path else ())


class PoolSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runners that the server makes itself, in containers of podman, while sessions need them."""

    image: Annotated[str, Meta(min_length=1, description="Image of its containers; it has Ostler in it.")]
    labels: Annotated[dict[str, str], _about("Labels of its runners; sessions that need others are not its own.")] = {}
    slots: Annotated[int, Meta(ge=1, description="Sessions that may be at work on one runner at a time.")] = 1
    max_runners: Annotated[int, Meta(ge=1, description="Most runners at a time, whichever server made them.")] = 4
    warm: Annotated[int, Meta(ge=0, description="Runners whose slots are kept free, ready for sessions to come.")] = 0
    idle_seconds: Annotated[
        float, Meta(ge=0, description="A runner that has nothing to do is emptied and removed after this time.")
    ] = 600.0
    servers: Annotated[
        tuple[str, ...], _about("Addresses that its runners dial; by default the one that the server advertises.")
    ] = ()
    insecure: Annotated[bool, _about("Allow http to another machine, where others can read along.")] = False
    ca_file: Annotated[
        str | None,
        _about("File with the authorities that its runners trust at servers; by default `ca_file` of the server."),
    ] = None
    network: Annotated[str | None, _about("Network of its containers, such as `host`; podman's own by default.")] = None
    volumes: Annotated[
        tuple[str, ...], _about("Folders of the server's machine that its containers may read, at the same path.")
    ] = ()
    command: Annotated[tuple[str, ...], Meta(min_length=1, description="How Ostler is called in the image.")] = (
        "ostler",
    )


def check_agent(name: str, agent: AgentSetting) -> None:
    """Raise for an agent that cannot be run so."""
    if not _AGENT_NAME.fullmatch(name):
        raise SettingsError(name="agents", value=name, reason="use a-z 0-9 . _ and - in the name of an agent.")
    if not agent.words:
        raise SettingsError(name=f"agents.{name}", value="", reason="needs a path or a command.")


def check_pool(name: str, pool: PoolSetting) -> None:
    """Raise for a pool that could never have a runner."""
    if not _POOL_NAME.fullmatch(name):
        raise SettingsError(name="pools", value=name, reason="use a-z 0-9 and -, at most 32, in the name of a pool.")
    if pool.image.startswith("-"):
        raise SettingsError(name=f"pools.{name}.image", value=pool.image, reason="is no name of an image.")
    if pool.warm > pool.max_runners:
        reason = f"must not be more than max_runners, which is {pool.max_runners}."
        raise SettingsError(name=f"pools.{name}.warm", value=pool.warm, reason=reason)
    for volume in pool.volumes:
        if not _FOLDER.fullmatch(volume):
            reason = "must be the absolute path of a folder, without commas, colons and quotes."
            raise SettingsError(name=f"pools.{name}.volumes", value=volume, reason=reason)
    for server in pool.servers:
        if not _ADDRESS.fullmatch(server):
            reason = "must be where runners reach a server: https://host:port, without a path."
            raise SettingsError(name=f"pools.{name}.servers", value=server, reason=reason)
