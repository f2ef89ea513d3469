"""What the operator decides about workspaces."""

from collections.abc import Mapping

import msgspec

from ostler.base.addresses import AddressRules
from ostler.base.settings import Settings
from ostler.runner.file_trees.unpacking import UnpackLimits
from ostler.runner.workspaces.recorder import RecordLimits
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.workspaces import SnapshotProvider

_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decides."""

    policy: Policy = Policy()
    providers: tuple[SnapshotProvider, ...] = ()
    """Their order, best first; empty for the usual one."""
    kept_bases: int = 8
    """Base trees that are kept although nobody uses them."""
    max_upload_bytes: int = 256 * 2**20
    max_repository_bytes: int = 16 * 2**30
    unpacking: UnpackLimits = UnpackLimits()
    recording: RecordLimits = RecordLimits()
    zfs_command: tuple[str, ...] = ("zfs",)


def options_from(
    settings: Settings, environ: Mapping[str, str], *, is_own: bool = False, runner: str | None = None
) -> Options:
    """What the settings say about workspaces; `is_own` for a server that only the people of this machine can reach.

    `runner` is the name of one that dials in.
    """
    return Options(
        policy=Policy(
            protocols=settings.repository_protocols,
            hosts=settings.repository_hosts,
            folders=settings.repository_folders,
            home=environ.get("HOME") if is_own and not settings.repository_folders else None,
            closed=str(settings.state_dir),
            runner=runner,
            addresses=AddressRules.reading(settings.allowed_addresses),
            proxied=any(environ.get(name) for name in _PROXIES),
        ),
        providers=settings.snapshot_providers,
        kept_bases=settings.kept_bases,
        max_upload_bytes=settings.max_upload_bytes,
        max_repository_bytes=settings.max_repository_bytes,
        unpacking=UnpackLimits(total_bytes=settings.max_unpacked_bytes),
        recording=RecordLimits(file_bytes=settings.max_snapshot_file_bytes, total_bytes=settings.max_snapshot_bytes),
    )
