"""What can be said about a delivery before there is anything to deliver."""

from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

from ostler.base.addresses import Unresolved
from ostler.base.errors import InvalidRequest
from ostler.runner.workspaces.repositories.policy import Address, Policy, allowed, allowed_folder, checked_ref
from ostler.wire.workspaces import Deliver, ForgeKind, Repo

_KNOWN_HOSTS: dict[str, ForgeKind] = {"github.com": "github", "gitlab.com": "gitlab", "codeberg.org": "gitea"}


def check_delivery(repo: Repo, wanted: Deliver, policy: Policy) -> None:
    """Raise if the result could never be handed over in this way."""
    for field, name in (("branch", wanted.branch), ("targetBranch", wanted.target_branch)):
        if name is not None:
            checked_ref(name, field=f"delivery.{field}")
    match wanted.mode:
        case "patch":
            pass
        case "local":
            check_checkout(repo, policy)
        case "commit":
            if repo.mode != "checkout":
                raise refused("delivery.mode", "the agent does not work in a checkout of yours", "Choose another way")
        case "branch":
            _check_remote(repo, "a branch", policy)
        case "pr":
            _check_remote(repo, "a pull request", policy)
            _check_forge(repo, wanted, policy)
        case _:
            assert_never(wanted.mode)


def _check_remote(repo: Repo, what: str, policy: Policy) -> None:
    if repo.mode == "checkout" and repo.url is None:
        raise refused("delivery.mode", f"{what} needs a remote, and the checkout has none", "Choose a commit")
    if repo.mode not in {"git", "checkout"}:
        raise refused("delivery.mode", f"{what} needs a workspace of a git repository", "Choose a patch")
    allowed(repo.url or "", policy)


def _check_forge(repo: Repo, wanted: Deliver, policy: Policy) -> None:
    if wanted.credential is None and repo.credential is None:
        raise refused(
            "delivery.credential", "a pull request needs a token for the forge", "Give one, or choose a branch"
        )
    forge_kind(allowed(repo.url or "", policy), wanted.forge, field="delivery.forge")
    check_api_url(wanted.api_url, policy, field="delivery.apiUrl")


def check_checkout(repo: Repo, policy: Policy) -> None:
    """Raise unless the workspace is made from a folder or a checkout of this machine. Blocks."""
    if repo.mode == "folder":
        allowed_folder(repo.path or "", policy, field="repo.path")
        return
    if repo.mode == "checkout":
        raise refused("delivery.mode", "the agent works in your checkout, so all of it is there", "Choose a commit")
    address = allowed(repo.url or "", policy) if repo.mode == "git" else None
    if address is None or address.protocol != "file":
        raise refused(
            "delivery.mode", "the workspace is not made from a folder of this machine", "Choose a branch or a patch"
        )
    if not (Path(address.path) / ".git").exists():
        raise refused("delivery.mode", f"{address.path} has no files of its own, only branches", "Choose a branch")


def forge_kind(address: Address, named: ForgeKind | None, *, field: str = "forge") -> ForgeKind:
    """Which forge a repository is on; one that is not known by its host must be named."""
    found = named or _KNOWN_HOSTS.get(address.host.lower())
    if found is None:
        host = address.host or "this repository"
        raise refused(field, f"it is not known which forge {host} is", "Name github, gitlab or gitea")
    if "/" not in address.path.strip("/").removesuffix(".git"):
        raise refused(field, "the repository's address has no owner and name", "Choose a branch or a patch")
    return found


def check_api_url(api_url: str | None, policy: Policy, *, field: str = "apiUrl") -> None:
    """Raise unless the server may call this address. Blocks."""
    if api_url is None:
        return
    target = policy.addresses.target(api_url, field)
    parts = urlsplit(api_url)
    host = (parts.hostname or "").lower()
    known = any(fnmatchcase(host, pattern.lower()) for pattern in policy.hosts)
    if parts.scheme not in policy.protocols or parts.username is not None or not host or not known:
        address = f"'{parts.scheme}://{host}' is not an address that this server may call"
        raise refused(field, address, "Ask its operator to allow it with repository_hosts and repository_protocols")
    with suppress(Unresolved):  # it is looked for again when it is called
        policy.addresses.resolved(target, field)


def refused(field: str, why: str, next_step: str) -> InvalidRequest:
    """The error about one field."""
    return InvalidRequest(reason=f"{field}: {why}. {next_step}.", errors={field: [why]})
