"""The errors around tenants, projects and API keys; part of the table."""

from ostler.base.errors.error import OstlerError


class NameTaken(OstlerError):
    """The name of a tenant or project is another's."""

    code, status, title = "name_taken", 409, "Name already used"
    template = "There {verb} a {what} '{name}' already. Choose another name."


class LimitReached(OstlerError):
    """A tenant, a project or an actor has as much as its limits allow."""

    code, status, title = "limit_reached", 429, "Limit reached"
    template = "The {scope} '{id}' may have {value} {what} and has {used}. {hint}"


class NotEmpty(OstlerError):
    """A tenant or project cannot be removed: something lives there."""

    code, status, title = "not_empty", 409, "Not empty"
    template = "The {what} '{name}' stays: {why}."


class NoRole(OstlerError):
    """Whoever asks is known to their provider, and no rule of ours gives them a role."""

    code, status, title = "no_role", 403, "No role"
    template = (
        "{actor} is known here, and no rule of `oidc_claims` gives them a role. Their token has the claims {claims}."
        "{hint} Ask the operator of this server for a rule."
    )


class ProviderAway(OstlerError):
    """The provider that signs tokens cannot be asked for its keys."""

    code, status, title = "provider_away", 503, "Provider cannot be reached"
    template = "The keys of {issuer} cannot be read, so this token cannot be checked. Try again in {retry_after} s."
