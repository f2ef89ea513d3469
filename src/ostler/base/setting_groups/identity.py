"""Settings of people that sign in at an OpenID provider; part of the settings."""

import re
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from ostler.base.errors import SettingsError
from ostler.base.setting_groups.cluster import ClusterSettings
from ostler.base.tls.loopback import is_loopback

_ROLES = ("viewer", "operator", "admin")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_GROUP = re.compile(r"\{([^{}]*)\}")


def _about(description: str) -> Meta:
    return Meta(description=description)


class ClaimRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What people with a claim may do; named groups of `matches` may stand in braces in what follows."""

    claim: Annotated[str, Meta(min_length=1, description="Its name, or its place such as `/realm_access/roles`.")]
    equals: Annotated[str | None, _about("Its value, or one of its values.")] = None
    matches: Annotated[str | None, _about("Or a regular expression for the whole of the value.")] = None
    tenant: Annotated[str, _about("The tenant that they may use; `default` is the server's own.")] = "default"
    project: Annotated[str | None, _about("The only project of it; absent for all.")] = None
    role: Annotated[str, _about("viewer, operator or admin.")]


class IdentitySettings(ClusterSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who comes in with what the provider signed."""

    public_url: Annotated[
        str | None, _about("Where clients reach this server, such as https://ostler.example.com; MCP clients are told.")
    ] = None
    oidc_issuer: Annotated[
        str | None,
        _about("An OpenID provider, such as https://id.example.com/realms/acme: its signed tokens (JWT) are taken."),
    ] = None
    oidc_audience: Annotated[str | None, _about("Tokens must be made for this audience.")] = None
    oidc_client_id: Annotated[
        str | None, _about("Public client at the provider with which `ostler login` gets tokens (device flow).")
    ] = None
    oidc_claims: Annotated[
        tuple[ClaimRule, ...] | None,
        _about("What its people may do: a table [[oidc_claims]] for each rule, or one JSON array. All that fit count."),
    ] = None

    tls_client_claims: Annotated[
        tuple[ClaimRule, ...] | None,
        _about(
            "What clients with a certificate of `tls_client_ca` may do: rules like those of `oidc_claims`, for the "
            "claim `names`: its common name and DNS names."
        ),
    ] = None

    def takes_people(self) -> bool:
        """Whether clients come in with tokens of a provider or certificates."""
        return self.oidc_issuer is not None or self.tls_client_claims is not None


def check_identity(settings: IdentitySettings) -> None:
    """Raise for what cannot work."""
    for name in ("oidc_issuer", "public_url"):
        if (value := getattr(settings, name)) is not None and not _is_safe(value):
            reason = "must be an https address without query; http is taken for this machine only."
            raise SettingsError(name=name, value=value, reason=reason)
    for name in ("oidc_audience", "oidc_claims"):
        if (getattr(settings, name) is None) is not (settings.oidc_issuer is None):
            needs, given = (name, "oidc_issuer") if settings.oidc_issuer is not None else ("oidc_issuer", name)
            raise SettingsError(name=given, value="given", reason=f"means nothing without {needs}. Give it too.")
    if settings.tls_client_claims is not None and settings.tls_client_ca is None:
        raise SettingsError(name="tls_client_claims", value="given", reason="means nothing without tls_client_ca.")
    for name in ("oidc_claims", "tls_client_claims"):
        for number, rule in enumerate(getattr(settings, name) or ()):
            if (fault := next(_faults(rule), None)) is not None:
                raise SettingsError(name=name, value=f"rule {number + 1}, {rule.claim}", reason=fault)


def _is_safe(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def _faults(rule: ClaimRule) -> Iterator[str]:
    if (rule.equals is None) is (rule.matches is None):
        yield "needs either equals or matches."
    groups: frozenset[str] = frozenset()
    try:
        groups = frozenset(re.compile(rule.matches or "").groupindex)
    except re.error as error:
        yield f"matches is no regular expression ({error})."
    for name in ("tenant", "project", "role"):
        text = getattr(rule, name) or ""
        for wanted in _GROUP.findall(text):
            if wanted not in groups:
                yield f"{name} names the group {{{wanted}}}, which matches does not have."
    if not _GROUP.search(rule.role) and rule.role not in _ROLES:
        yield f"role '{rule.role}' is not one of {', '.join(_ROLES)}."
    for name in ("tenant", "project"):
        text = getattr(rule, name)
        if text is not None and not _GROUP.search(text) and not _NAME.fullmatch(text):
            yield f"{name} '{text}' is no name of one."
