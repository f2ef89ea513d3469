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
        "{actor} is known here, and no rule of `{rules}` gives them a role. Their provider tells the claims {claims}."
        "{hint} Ask the operator of this server for a rule."
    )


class ProviderAway(OstlerError):
    """The provider that knows people cannot be asked."""

    code, status, title = "provider_away", 503, "Provider cannot be reached"
    template = "{issuer} cannot be asked to {what}. Try again in {retry_after} s."


class SignInFailed(OstlerError):
    """Somebody came back from their provider with what cannot be used."""

    code, status, title = "sign_in_failed", 400, "Not signed in"
    template = "{reason} Sign in again."
