"""Which repositories may be used, and which names of branches and commits are names at all."""

import re
from base64 import b64encode
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, assert_never
from urllib.parse import quote, unquote, urlsplit

import msgspec

from ostler.base.addresses import AddressRules, Target, Unresolved
from ostler.base.errors import InvalidRequest, PathRefused, RepositoryFailed, RepositoryRefused
from ostler.runner.workspaces.git import Remote
from ostler.runner.workspaces.orders import Credential
from ostler.wire.provisioning import MachinePath

Protocol = Literal["https", "http", "ssh", "file"]
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SCP = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>[^@/:]+):(?!/?/)(?P<path>[^:].*)")
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|^[-./]|[/.]$|^@$|^HEAD$")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LONGEST = 4096
_PORTS = {"https": 443, "http": 80, "ssh": 22}
_FIELD = "repo.url"
_CONNECT_SECONDS = 15


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows."""

    protocols: tuple[Protocol, ...] = ("https", "ssh")
    hosts: tuple[str, ...] = ("*",)
    """Names, or patterns such as `*.example.com`."""
    folders: tuple[str, ...] = ()
    """Folders of this machine below which repositories and folders may be used; none unless named."""
    home: str | None = None
    """If what people have in this home folder may be used instead: all below it but hidden folders."""
    closed: str | None = None
    """A folder that is never below an allowed one: the server's own state."""
    runner: str | None = None
    """What the runner of this machine is called; None for that of a server."""
    addresses: AddressRules = AddressRules()
    proxied: bool = False
    """Whether git goes through a proxy, which then finds the hosts."""

    @property
    def whose(self) -> str:
        """Whose folders these are, where that is not plain."""
        return f" of the runner '{self.runner}'" if self.runner is not None else ""

    @property
    def program(self) -> str:
        """What the operator starts to change them."""
        return "`ostler runner` on its machine" if self.runner is not None else "the server"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A repository that may be used; its url holds no secret."""

    protocol: Protocol
    url: str
    host: str = ""
    port: int | None = None
    path: str = ""


def allowed(url: str, policy: Policy) -> Address:
    """Read an address and hold it against the policy; raises RepositoryRefused."""
    address = _parsed(url)
    if address.protocol == "file":
        allowed_folder(address.path, policy)
    elif address.protocol not in policy.protocols:
        raise _refused(url, f"{address.protocol} is not allowed here. Use {' or '.join(policy.protocols)}.")
    elif not any(fnmatchcase(address.host.lower(), pattern.lower()) for pattern in policy.hosts):
        raise _refused(url, f"the host {address.host} is not on the list of allowed hosts.")
    else:
        _target(address, policy)
    return address


def reachable(url: str, policy: Policy) -> None:
    """Also find out where the host is; one that nobody knows now may be known later. Blocks."""
    address = allowed(url, policy)
    if address.protocol != "file":
        with suppress(Unresolved):
            policy.addresses.resolved(_target(address, policy), _FIELD)


def _target(address: Address, policy: Policy) -> Target:
    return policy.addresses.host(address.host, address.port or _PORTS[address.protocol], _FIELD)


def allowed_folder(path: str, policy: Policy, *, field: str = "repo.url") -> Path:
    """A folder of this machine as it really is; raises RepositoryRefused unless it is below an allowed one."""
    try:
        real = Path(path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        real = None
    if not real or not _is_allowed(real, policy) or not real.is_dir():
        if real is None and _is_missing(path, policy):
            raise _refused(
                path[:_LONGEST], "there is no such folder. Make it or bring it back, or name another.", field
            )
        shown = path if path.startswith("/") else "FOLDER"
        reason = (
            f"it is not a folder below one of the allowed local folders{policy.whose}. To allow it, start "
            f"{policy.program} with `--repository-folder {shown}` (setting repository_folders)."
        )
        raise _refused(path[:_LONGEST], reason, field)
    return real


def allowed_path(path: str, policy: Policy, folders: tuple[str, ...], *, whole: bool) -> MachinePath:
    """Where a path really leads, its end may be missing; raises PathRefused unless that is below an allowed folder.

    With `whole` all below it is meant too: then it is no allowed folder itself, and nothing closed lies in it. A link
    is meant itself then, and not what it leads to.
    """
    if not path.startswith("/") or "\0" in path or len(path) > _LONGEST:
        raise InvalidRequest(reason="path: give an absolute path.", errors={"path": [path[:200]]})
    try:
        named = Path(path)
        real = named.parent.resolve() / named.name if whole and named.name not in {"", ".."} else named.resolve()
    except (OSError, RuntimeError) as error:
        reason = "leads round in circles, or has a name that no disk takes"
        raise InvalidRequest(reason=f"path: '{path[:200]}' {reason}.", errors={"path": [reason]}) from error
    roots = [Path(folder).resolve() for folder in folders]
    if not any(real.is_relative_to(root) for root in roots) and not _is_allowed(real, policy):
        setting = f"{policy.whose} (setting repository_folders)"
        raise PathRefused(path=path[:200], reason=f"is not below one of the allowed folders{setting}")
    roots += [Path(each).resolve() for each in (*policy.folders, *filter(None, (policy.home, policy.closed)))]
    if whole and any(root.is_relative_to(real) for root in roots):
        raise PathRefused(path=path[:200], reason="is or holds a folder that has to stay")
    folder = next(above for above in real.parents or (real,) if above.is_dir())
    return MachinePath(folder=str(folder), path=str(real.relative_to(folder)))


def is_below(path: str, policy: Policy, folders: tuple[str, ...]) -> bool:
    """Whether a file really lies below one of these folders, or an allowed one, wherever links lead."""
    if not path.startswith("/"):
        return False
    try:
        real = Path(path).resolve(strict=True)
        return any(real.is_relative_to(Path(folder).resolve()) for folder in folders) or _is_allowed(real, policy)
    except (OSError, ValueError, RuntimeError):
        return False


def _is_missing(path: str, policy: Policy) -> bool:
    """Whether this would be allowed if it were there."""
    try:
        place = Path(path).parent.resolve(strict=True) / Path(path).name
        return _is_allowed(place, policy) and not place.is_symlink()
    except (OSError, ValueError, RuntimeError):  # a name may be too long for the disk, among others
        return False


def _is_allowed(real: Path, policy: Policy) -> bool:
    closed = Path(policy.closed).resolve() if policy.closed is not None else None
    if policy.home is None:
        roots = [Path(root).resolve() for root in policy.folders]
        return any(real.is_relative_to(root) and not _cut_off(real, root, closed) for root in roots)
    home = Path(policy.home).resolve()
    if not real.is_relative_to(home) or _cut_off(real, home, closed) or (closed and closed.is_relative_to(real)):
        return False
    below = real.relative_to(home).parts
    return bool(below) and not below[0].startswith(".")


def _cut_off(real: Path, root: Path, closed: Path | None) -> bool:
    """Whether the closed folder lies between the two; a root inside of it was named on purpose."""
    return closed is not None and real.is_relative_to(closed) and not root.is_relative_to(closed)


def _parsed(url: str) -> Address:
    if not url or len(url) > _LONGEST or _ODD.search(url) or url.startswith("-"):
        raise _refused(url[:200], "it is not the address of a repository.")
    if url.startswith("/"):
        return Address(protocol="file", url=f"file://{quote(url)}", path=url)
    if "://" not in url and (found := _SCP.fullmatch(url)):
        user = found["user"] or "git"
        return _ssh(url, user, found["host"], found["path"], f"{user}@{found['host']}:{found['path']}")
    return _split(url)


def _split(url: str) -> Address:
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname or "", parts.port, parts.username
    except ValueError as error:
        raise _refused(url, "it is not the address of a repository.") from error
    match parts.scheme:
        case "file" if not parts.netloc and parts.path.startswith("/"):
            return Address(protocol="file", url=url, path=unquote(parts.path))
        case "https" | "http":
            if user is not None:
                raise _refused(url, "it holds a user or a password. Send the credential apart from the address.")
            _check_host(url, host)
            return Address(
                protocol="https" if parts.scheme == "https" else "http", url=url, host=host, port=port, path=parts.path
            )
        case "ssh":
            at = f"{host}:{port}" if port else host
            if parts.password is not None:
                raise _refused(url, "it holds a password. Send the credential apart from the address.")
            found = _ssh(url, user or "git", host, parts.path, f"ssh://{user or 'git'}@{at}{parts.path}")
            return msgspec.structs.replace(found, port=port)
        case _:
            raise _refused(url, "only https, ssh and folders of this machine can be repositories.")


def _ssh(given: str, user: str, host: str, path: str, url: str) -> Address:
    if not _USER.fullmatch(user):
        raise _refused(given, "its user is not a user's name.")
    _check_host(given, host)
    return Address(protocol="ssh", url=url, host=host, path=path)


def _check_host(url: str, host: str) -> None:
    if not (_HOST.fullmatch(host) or _HOST.fullmatch(f"[{host}]")):
        raise _refused(url, "its host is not a host's name.")


def _refused(url: str, reason: str, field: str = "repo.url") -> RepositoryRefused:
    return RepositoryRefused(url=_without_user(url), reason=reason, errors={field: [reason]})


def _without_user(url: str) -> str:
    """A refused address as people may see it: without a user or a password."""
    before, mark, after = url.partition("://")
    if not mark:
        return url
    at, slash, path = after.partition("/")
    return f"{before}://{at.rpartition('@')[2]}{slash}{path}"


def checked_ref(name: str, *, field: str = "branch") -> str:
    """The name of a branch or tag; raises InvalidRequest for what git would not take, or take for an option."""
    if not name or len(name) > 250 or _BAD_REF.search(name):
        raise InvalidRequest(
            reason=f"{field}: '{name[:80]}' cannot be the name of a branch.", errors={field: [name[:80]]}
        )
    return name


def checked_commit(name: str) -> str:
    """A commit's id, whole or shortened."""
    if not _COMMIT.fullmatch(name.lower()):
        raise InvalidRequest(
            reason=f"commit: '{name[:80]}' is not a commit's id. Give 7 to 64 hexadecimal digits.",
            errors={"commit": [name[:80]]},
        )
    return name.lower()


def remote_of(address: Address, credential: Credential | None, policy: Policy) -> Remote:
    """How to reach a repository: one protocol, the place that was checked, the credential in no argument. Blocks."""
    given = credential or Credential()
    match address.protocol:
        case "https" | "http":
            return _web_remote(address, given, _found(address, policy))
        case "ssh":
            command = _ssh_command(given, _found(address, policy))
            return Remote(protocols=("ssh",), env={"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"})
        case "file":
            return Remote(protocols=("file",))
        case _:
            assert_never(address.protocol)


def _found(address: Address, policy: Policy) -> Target:
    """Where the host is; of one that the operator named, and behind a proxy, nobody here need know."""
    target = _target(address, policy)
    try:
        return policy.addresses.resolved(target, _FIELD)
    except Unresolved as error:
        if policy.addresses.is_named(target.host) or (policy.proxied and address.protocol != "ssh"):
            return target
        raise RepositoryFailed(url=address.url, reason=f"{error}.") from error


def _web_remote(address: Address, credential: Credential, target: Target) -> Remote:
    settings: list[tuple[str, str]] = []
    if target.found and target.host not in target.found:
        addresses = ",".join(f"[{each}]" if ":" in each else each for each in target.found)
        settings.append(("http.curloptResolve", f"{target.host}:{target.port}:{addresses}"))
    secrets: tuple[str, ...] = ()
    if credential.token is not None:
        basic = b64encode(f"{credential.user}:{credential.token}".encode()).decode()
        settings.append(("http.extraHeader", f"Authorization: Basic {basic}"))
        secrets = (credential.token, basic)
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return Remote(protocols=(address.protocol,), env=env, secrets=secrets)


def _ssh_command(credential: Credential, target: Target) -> str:
    """Only the given key is ever offered: those of the server's own user are nobody else's."""
    key = _quoted(credential.ssh_key_file) if credential.ssh_key_file else "none"
    options = ["-F /dev/null", "-o BatchMode=yes", "-o StrictHostKeyChecking=yes", "-o IdentityAgent=none"]
    options += ["-o IdentitiesOnly=yes", f"-o IdentityFile={key}", f"-o ConnectTimeout={_CONNECT_SECONDS}"]
    known_as = target.host if target.port == _PORTS["ssh"] else f"[{target.host}]:{target.port}"
    if target.found:
        options += [f"-o HostName={target.found[0]}", f"-o HostKeyAlias={_quoted(known_as)}"]
    if credential.ssh_known_hosts_file:
        options.append(f"-o UserKnownHostsFile={_quoted(credential.ssh_known_hosts_file)}")
    return " ".join(["ssh", *options])


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
