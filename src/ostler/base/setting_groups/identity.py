"""Settings of people that sign in at an OpenID provider or at GitHub; part of the settings."""

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
        str | None, _about("Client at the provider with which people sign in, in the browser and with `ostler login`.")
    ] = None
    oidc_client_secret: Annotated[
        str | None, _about("Its secret, if it has one; without it the client is a public one.")
    ] = None
    oidc_cli_client_id: Annotated[
        str | None,
        _about("Public client for `ostler login` (device flow); needed where `oidc_client_id` has a secret."),
    ] = None
    oidc_scopes: Annotated[str, _about("What is asked for when people sign in in the browser.")] = (
        "openid profile email"
    )
    sign_in_hours: Annotated[
        float, Meta(gt=0, le=720, description="Hours after which people have to sign in again in the browser.")
    ] = 12.0
    github_client_id: Annotated[str | None, _about("OAuth app of GitHub with which people sign in in the browser.")] = (
        None
    )
    github_client_secret: Annotated[str | None, _about("Its secret.")] = None
    github_claims: Annotated[
        tuple[ClaimRule, ...] | None,
        _about(
            "What people of GitHub may do: rules like those of `oidc_claims`, for the claims `login`, `id`, `orgs` and "
            "`memberships`, such as acme:admin or acme:member; names are in lower case."
        ),
    ] = None
    github_url: Annotated[str, _about("Where GitHub is, if it is your own.")] = "https://github.com"
    github_api_url: Annotated[str, _about("And its API.")] = "https://api.github.com"
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

    def client_for_command_line(self) -> str | None:
        """The client of `ostler login`, which can keep no secret."""
        own = self.oidc_client_id if self.oidc_client_secret is None else None
        return self.oidc_cli_client_id or own

    def takes_people(self) -> bool:
        """Whether clients come in with tokens of a provider or certificates, or sign in."""
        given = (self.oidc_issuer, self.tls_client_claims, self.github_client_id)
        return any(each is not None for each in given)


def check_identity(settings: IdentitySettings) -> None:
    """Raise for what cannot work."""
    for name in ("oidc_issuer", "public_url", "github_url", "github_api_url"):
        if (value := getattr(settings, name)) is not None and not _is_safe(value):
            reason = "must be an https address without query; http is taken for this machine only."
            raise SettingsError(name=name, value=value, reason=reason)
    for name in ("oidc_audience", "oidc_claims"):
        if (getattr(settings, name) is None) is not (settings.oidc_issuer is None):
            needs, given = (name, "oidc_issuer") if settings.oidc_issuer is not None else ("oidc_issuer", name)
            raise SettingsError(name=given, value="given", reason=f"means nothing without {needs}. Give it too.")
    for name, needs in (
        ("oidc_client_id", "oidc_issuer"),
        ("oidc_client_secret", "oidc_client_id"),
        ("oidc_cli_client_id", "oidc_issuer"),
        ("github_client_id", "github_client_secret"),
        ("github_client_secret", "github_claims"),
        ("github_claims", "github_client_id"),
    ):
        if getattr(settings, name) is not None and getattr(settings, needs) is None:
            raise SettingsError(name=name, value="given", reason=f"means nothing without {needs}. Give it too.")
    if "openid" not in settings.oidc_scopes.split():
        raise SettingsError(name="oidc_scopes", value=settings.oidc_scopes, reason="must have openid among its words.")
    if settings.tls_client_claims is not None and settings.tls_client_ca is None:
        raise SettingsError(name="tls_client_claims", value="given", reason="means nothing without tls_client_ca.")
    for name in ("oidc_claims", "github_claims", "tls_client_claims"):
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
