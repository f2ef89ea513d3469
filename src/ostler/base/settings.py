"""Every setting: its type, default and meaning, read from flags, then OSTLER_* variables, then a config file."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ostler.base import signing
from ostler.base.addresses import AddressRules, networks_of
from ostler.base.errors import SettingsError
from ostler.base.setting_groups.identity import IdentitySettings, check_identity
from ostler.base.setting_groups.tables import AgentSetting, PoolSetting, check_agent, check_pool
from ostler.base.setting_groups.tls import check_tls
from ostler.base.tls.loopback import is_loopback
from ostler.wire.sessions import MOST_INSTRUCTIONS
from ostler.wire.workspaces import SnapshotProvider

ENV_PREFIX = "OSTLER_"
_ADVERTISED = re.compile(r"https?://[^/?#@\s]+/?")


def _about(description: str) -> Meta:
    return Meta(description=description)


Seconds = Annotated[float, Meta(ge=0)]


class Settings(IdentitySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a server behaves."""

    state_dir: Annotated[Path, _about("Folder where everything lives: database, sessions, logs.")]
    host: Annotated[str, _about("Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 picks a free one.")] = 2468
    token: Annotated[str | None, _about("Clients must send this token.")] = None
    no_token: Annotated[
        bool, _about("Ignore any configured token: everyone who reaches the port may do everything.")
    ] = False
    allow_open_network: Annotated[
        bool, _about("Permit listening without a token on an address other machines can reach.")
    ] = False
    max_wrong_tokens: Annotated[int, Meta(ge=1, description="Wrong tokens that one address may send in a minute.")] = 50
    allowed_hosts: Annotated[
        tuple[str, ...], _about("More names this server answers to, beside loopback and `host`.")
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        _about(
            "Addresses and networks of proxies in front of this server, such as 10.0.0.5 or 10.0.0.0/8: what they say "
            "in X-Forwarded-For tells clients apart. Of anybody else it is ignored."
        ),
    ] = ()
    cors_origins: Annotated[tuple[str, ...], _about("Web origins that may call the API; none by default.")] = ()
    cors_methods: Annotated[tuple[str, ...], _about("Methods allowed from those origins.")] = (
        "GET",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
    )
    cors_headers: Annotated[tuple[str, ...], _about("Request headers allowed from those origins.")] = (
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
        "x-ai-sdk-version",
    )
    cors_credentials: Annotated[bool, _about("Allow cookies and credentials from those origins.")] = False
    default_agent: Annotated[
        str,
        _about(
            "Agent of a session that names none, where that is possible. `auto` is Ostler's own once it has a key of a "
            "model provider, and the mock before."
        ),
    ] = "auto"
    default_instructions: Annotated[
        str, _about("Instructions of a session that has none of its own: added to the agent's system prompt.")
    ] = ""
    agents: Annotated[
        dict[str, AgentSetting] | None,
        _about("Programs of agents, and new agents that speak ACP: a table for each, or one JSON object."),
    ] = None
    auto_install: Annotated[bool, _about("Install an agent that is missing when a session first needs it.")] = True
    install_timeout_seconds: Annotated[Seconds, _about("Longest installation of an agent.")] = 900.0
    release_mirror: Annotated[
        Annotated[str, Meta(pattern=r"^https?://\S+$")] | None,
        _about("Where the vendors' own binaries are fetched instead: an address with a folder for each vendor's host."),
    ] = None
    share_credentials: Annotated[
        bool, _about("Hand agents the credentials found in the server's own variables and home folder.")
    ] = False
    allowed_env: Annotated[
        tuple[str, ...],
        _about(
            "Variables that sessions may set although they decide what programs run or load; patterns such as GIT_*."
        ),
    ] = ()
    max_body_bytes: Annotated[int, Meta(ge=1024, description="Largest request body.")] = 16 * 2**20
    max_upload_bytes: Annotated[
        int, Meta(ge=1024, description="Largest body where files are sent, such as messages with images.")
    ] = 256 * 2**20
    request_timeout_seconds: Annotated[float, Meta(gt=0, description="Time a request's body may take to arrive.")] = (
        60.0
    )
    max_header_bytes: Annotated[
        int, Meta(ge=1024, description="Longest request line and headers of a request together.")
    ] = 64 * 2**10
    max_headers: Annotated[int, Meta(ge=10, description="Most headers of a request.")] = 200
    header_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Time a connection may take to send its first, or next, request's headers.")
    ] = 20.0
    keep_alive_seconds: Annotated[
        int, Meta(ge=1, description="Time a connection may wait for its next request before it is closed.")
    ] = 75
    heartbeat_seconds: Annotated[float, Meta(gt=0, description="Pause between comments on a quiet event stream.")] = (
        15.0
    )
    max_streams_per_client: Annotated[
        int,
        Meta(
            ge=1,
            description="Event streams and sockets that one client, known by its address, may have open. Behind a "
            "proxy that `trusted_proxies` does not name all clients are one.",
        ),
    ] = 1000
    stream_buffer_bytes: Annotated[
        int,
        Meta(ge=4096, description="Newest events of a live session kept in memory; older ones come from the store."),
    ] = 2**20
    database: Annotated[
        str | None,
        _about(
            "PostgreSQL database to use instead of a file in the state folder: postgresql://user:password@host/name."
        ),
    ] = None
    advertise: Annotated[
        str | None,
        _about(
            "Where other servers of the same PostgreSQL database reach this one, such as http://10.0.0.1:2468; "
            "by default the address it listens on."
        ),
    ] = None
    server_timeout_seconds: Annotated[
        float,
        Meta(ge=1, description="Another server of the same database counts as lost after this time without a beat."),
    ] = 15.0
    database_sync: Annotated[
        Literal["full", "normal"], _about("`full` survives a power cut; `normal` may lose the last moments.")
    ] = "full"
    object_store: Annotated[
        str | None,
        _about(
            "Where images and uploads of clients, and files and memories of sessions are kept for all servers of one "
            "database: s3://bucket/prefix, gs://, az://, or file:///folder that all of them have. Needed where several "
            "servers share a database; by default the state folder."
        ),
    ] = None
    object_store_endpoint: Annotated[str | None, _about("Address of an object store that is not its provider's.")] = (
        None
    )
    object_store_region: Annotated[str | None, _about("Region of the bucket.")] = None
    engine: Annotated[str | None, _about("Temporal for durable work: temporal://host:7233/namespace.")] = None
    engine_api_key: Annotated[str | None, _about("API key for Temporal; it is sent over TLS only.")] = None
    engine_tls: Annotated[bool, _about("Talk to Temporal over TLS.")] = False
    engine_ca: Annotated[str | None, _about("File with the certificates that Temporal's own is checked with.")] = None
    engine_certificate: Annotated[str | None, _about("File with our certificate for Temporal.")] = None
    engine_certificate_key: Annotated[str | None, _about("File with the key of that certificate.")] = None
    deployment: Annotated[
        str,
        Meta(
            pattern="^[a-z0-9][a-z0-9-]{0,62}$",
            description="Name of this installation where several share a Temporal; the same for all its servers.",
        ),
    ] = "default"
    agent_start_timeout_seconds: Annotated[Seconds, _about("Time an agent may take to be ready.")] = 60.0
    turn_timeout_seconds: Annotated[Seconds, _about("Longest turn before it is ended as failed; 0 for no limit.")] = (
        14400.0
    )
    interrupt_grace_seconds: Annotated[
        Seconds, _about("Time an agent may take to end an interrupted turn before it is stopped.")
    ] = 10.0
    wrap_up_seconds: Annotated[
        Seconds,
        _about(
            "Time the agent of a session that is stopped has to end its turn; one that takes messages during a turn is "
            "asked to wrap up. Then it is interrupted."
        ),
    ] = 10.0
    stop_grace_seconds: Annotated[Seconds, _about("Pause between INT, TERM and KILL when an agent is stopped.")] = 1.5
    repository_folders: Annotated[
        tuple[str, ...],
        _about(
            "Folders of this machine below which repositories, folders and the `cwd` of sessions may lie. Without any, "
            "a server that only this machine can reach takes its own home folder, but for hidden folders."
        ),
    ] = ()
    allowed_addresses: Annotated[
        tuple[str, ...],
        _about("Hosts, addresses and networks that may be called although they are not public, such as 127.0.0.1."),
    ] = ()
    webhook_secret: Annotated[
        str | None,
        _about("What webhooks without a secret of their own are signed with: whsec_ and the base64 of 24 to 64 bytes."),
    ] = None
    repository_hosts: Annotated[
        tuple[str, ...], _about("Hosts that repositories may come from; patterns such as *.example.com.")
    ] = ("*",)
    repository_protocols: Annotated[
        tuple[Literal["https", "http", "ssh"], ...], _about("Protocols that repositories may come by.")
    ] = ("https", "ssh")
    snapshot_providers: Annotated[
        tuple[SnapshotProvider, ...], _about("Ways to make workspaces, best first; by default those that work here.")
    ] = ()
    runtimes: Annotated[
        tuple[Literal["local", "devcontainer", "disabled"], ...],
        _about("What agents may run in; `disabled` must be allowed here."),
    ] = ("local", "devcontainer")
    setup_timeout_seconds: Annotated[Seconds, _about("Longest setup command of a workspace.")] = 1800.0
    follower_inventories: Annotated[
        tuple[str, ...],
        _about("JSON files with machines that sessions may have as followers; they are read when the server starts."),
    ] = ()
    socks_port: Annotated[
        Annotated[int, Meta(ge=0, le=65535)] | None,
        _about(
            "Port of the SOCKS5 proxy by which leaders reach what followers registered; 0 picks a free one, absent for "
            "no proxy. It listens on `host`, without TLS."
        ),
    ] = None
    socks_idle_seconds: Annotated[
        Seconds, _about("A connection of the proxy on which nothing is said for so long is ended; 0 for no limit.")
    ] = 900.0
    socks_max_bytes: Annotated[
        int, Meta(ge=0, description="Bytes that one connection of the proxy may carry; 0 for no limit.")
    ] = 64 * 2**30
    netbird_url: Annotated[str, _about("Address of NetBird's API.")] = "https://api.netbird.io"
    netbird_token: Annotated[str | None, _about("Token of a NetBird account that makes keys for followers.")] = None
    tailscale_url: Annotated[str, _about("Address of Tailscale's API.")] = "https://api.tailscale.com"
    tailscale_token: Annotated[str | None, _about("Token of a Tailscale account that makes keys for followers.")] = None
    local_slots: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _about("Sessions that may be at work in this process at a time; absent for no limit, 0 leaves all to runners."),
    ] = None
    pools: Annotated[
        dict[str, PoolSetting] | None,
        _about(
            "Runners that the server makes itself when sessions need them: a table for each pool, or one JSON object."
        ),
    ] = None
    warm_agents: Annotated[
        int,
        Meta(ge=0, le=100, description="Agents started ahead for sessions like the last ones; 0 starts none ahead."),
    ] = 0
    shared_agents: Annotated[
        tuple[str, ...],
        _about(
            "Agents of which several sessions use one process: those of one person in one project that would start the "
            "same one. A pause does not stop it, and the session says so. Possible: opencode. None by default: each "
            "session has a process of its own."
        ),
    ] = ()
    idle_timeout_seconds: Annotated[
        Seconds,
        _about("An idle session's agent is ended after this time; the next prompt wakes it. 0 keeps it running."),
    ] = 900.0
    orphan_timeout_seconds: Annotated[
        Seconds, _about("How long agents work on while no server runs; then they are stopped.")
    ] = 600.0
    runner_beat_seconds: Annotated[
        float,
        Meta(gt=0, le=60, description="Pause between beats on the link of a runner; three without one end the link."),
    ] = 5.0
    max_frame_bytes: Annotated[
        int,
        Meta(
            ge=65536,
            description="Longest message taken from an agent once its long texts are cut; a longer one becomes "
            "agent.unparsed.",
        ),
    ] = 16 * 2**20
    max_item_length: Annotated[
        int,
        Meta(
            ge=1024,
            le=2**24,
            description="Longest text kept of one message or one command's output, in characters, or in bytes where it "
            "comes at once; what is cut is told.",
        ),
    ] = 8 * 2**20
    max_output_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Bytes that one process of an agent may say, all of which lie on disk while it runs; then it "
            "is stopped, and the next prompt starts another. 0 for no limit.",
        ),
    ] = 4 * 2**30
    max_idle_output_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Bytes that a process of an agent may have said when its turn is over; with more it is ended, "
            "which frees their room on disk, and the next prompt starts another. 0 for no limit.",
        ),
    ] = 64 * 2**20
    max_log_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Bytes on disk that the events of one session may take; its turn fails then, and it takes no "
            "more prompts. 0 for no limit.",
        ),
    ] = 2 * 2**30
    kept_bases: Annotated[int, Meta(ge=0, description="Base trees kept although no workspace uses them.")] = 8
    max_unpacked_bytes: Annotated[
        int, Meta(ge=1024, description="Largest content of an archive or a commit that becomes a workspace.")
    ] = 2 * 2**30
    kept_workspaces: Annotated[
        int, Meta(ge=0, description="Most workspaces of ended sessions that are kept, newest first; 0 for no limit.")
    ] = 1000
    kept_workspaces_days: Annotated[
        float, Meta(ge=0, description="Days after the end of its session that a workspace is kept; 0 for no limit.")
    ] = 30.0
    kept_workspaces_bytes: Annotated[
        int, Meta(ge=0, description="Bytes on disk that workspaces of ended sessions may take; 0 for no limit.")
    ] = 0
    audit_days: Annotated[
        float, Meta(ge=0, description="Days that lines of the audit log are kept; 0 keeps them for ever.")
    ] = 0.0
    max_snapshot_file_bytes: Annotated[
        int, Meta(ge=1024, description="Largest changed file that snapshots, diffs and deliveries have.")
    ] = 256 * 2**20
    max_snapshot_bytes: Annotated[
        int, Meta(ge=1024, description="Most bytes of changed files that they have together.")
    ] = 4 * 2**30
    max_repository_bytes: Annotated[
        int, Meta(ge=1024, description="Largest file that fetching a repository may write: all of its history, packed.")
    ] = 16 * 2**30
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _about("How much is logged.")] = "info"
    log_format: Annotated[Literal["text", "json"], _about("How it is logged.")] = "text"

    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def is_open(self) -> bool:
        """Whether everyone who reaches the server may do everything."""
        return self.effective_token() is None and (self.no_token or not self.takes_people())

    def effective_token(self) -> str | None:
        """The token clients must send, or None if the server is open."""
        return None if self.no_token else (self.token or "").strip() or None


def setting_help() -> dict[str, str]:
    """The description of each setting."""
    described = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    return {name: str(schema["description"]) for name, schema in described.items()}


def load_settings(*, flags: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Merge flags over environment over file over defaults, and check the result."""
    names = {field.name for field in msgspec.structs.fields(Settings)}
    from_env = {name: environ[ENV_PREFIX + name.upper()] for name in names if environ.get(ENV_PREFIX + name.upper())}
    from_file = _read_config(flags.get("config") or environ.get("OSTLER_CONFIG"), environ)
    given = {name: value for name, value in flags.items() if name in names and value is not None}
    merged: dict[str, Any] = {"state_dir": _default_state_dir(environ), **from_file, **_typed(from_env), **given}
    return _checked(_converted(merged))


def _default_state_dir(environ: Mapping[str, str]) -> str:
    data_home = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".local/share")
    return str(Path(data_home) / "ostler")


def _read_config(path: str | Path | None, environ: Mapping[str, str]) -> dict[str, Any]:
    config_home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".config")
    file = Path(path) if path else Path(config_home) / "ostler" / "config.toml"
    if path is None and not file.exists():
        return {}
    try:
        return tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SettingsError(name="config", value=str(file), reason=f"cannot be read ({error}).") from error


def _typed(from_env: dict[str, str]) -> dict[str, Any]:
    defaults = {field.name: field.default for field in msgspec.structs.fields(Settings)}
    return {
        name: tuple(filter(None, value.split(","))) if isinstance(defaults[name], tuple) else value
        for name, value in from_env.items()
    }


def _converted(merged: dict[str, Any]) -> Settings:
    values = {name: str(value) if isinstance(value, Path) else value for name, value in merged.items()}
    for name in ("agents", "pools", "oidc_claims", "github_claims", "tls_client_claims"):
        if isinstance(values.get(name), str):
            values[name] = _json(name, values[name])
    try:
        return msgspec.convert(values, Settings, strict=False, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        name = _named_in(str(error), values)
        raise SettingsError(name=name, value=values.get(name, ""), reason=_reason(name, str(error))) from error


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise SettingsError(name=name, value=text, reason=f"must be JSON ({error}).") from error


def _reason(name: str, message: str) -> str:
    schema = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"].get(name)
    if schema is None:
        return "there is no such setting."
    if "enum" in schema:
        return f"choose {' or '.join(schema['enum'])}."
    what, _, path = message.partition(" - at ")
    inside = path.strip("`").removeprefix(f"$.{name}").replace("[...]", "").strip(".")
    return f"{inside}: {what}." if inside else f"{what}."


def _named_in(message: str, values: dict[str, Any]) -> str:
    return next((name for name in values if f"$.{name}" in message or f"`{name}`" in message), "?")


def _checked(settings: Settings) -> Settings:
    if not settings.is_loopback() and settings.is_open() and not settings.allow_open_network:
        raise SettingsError(
            name="host",
            value=settings.host,
            reason="other machines can reach this address and there is no token. "
            "Give one with --token, or accept the risk with --no-token --allow-open-network.",
        )
    _check_addresses(settings)
    check_tls(settings)
    check_identity(settings)
    for name, agent in (settings.agents or {}).items():
        check_agent(name, agent)
    for name, pool in (settings.pools or {}).items():
        check_pool(name, pool)
    if (size := len(settings.default_instructions.encode())) > MOST_INSTRUCTIONS:
        reason = f"must not be longer than {MOST_INSTRUCTIONS} bytes."
        raise SettingsError(name="default_instructions", value=f"{size} bytes", reason=reason)
    if "*" in settings.cors_origins and settings.is_open():
        raise SettingsError(name="cors_origins", value="*", reason="needs a token; give one with --token.")
    return settings


def _check_addresses(settings: Settings) -> None:
    if settings.database is not None and not settings.database.startswith(("postgresql://", "postgres://")):
        reason = "must be the address of a PostgreSQL database: postgresql://user:password@host/name."
        raise SettingsError(name="database", value="***", reason=reason)
    for name in ("advertise", "advertise_to_runners"):
        if (value := getattr(settings, name)) is not None and not _ADVERTISED.fullmatch(value):
            reason = "must be where others reach this server: http://host:port, without a path."
            raise SettingsError(name=name, value=value, reason=reason)
    AddressRules.reading(settings.allowed_addresses)
    networks_of("trusted_proxies", settings.trusted_proxies)
    try:
        signing.key(settings.webhook_secret)
    except ValueError as error:
        raise SettingsError(name="webhook_secret", value="***", reason=f"{error}.") from error
