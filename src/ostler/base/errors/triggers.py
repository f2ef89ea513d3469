"""The errors around triggers; part of the table."""

from ostler.base.errors.error import OstlerError


class TriggerNotFound(OstlerError):
    """No trigger has this id or name."""

    code, status, title = "trigger_not_found", 404, "Trigger not found"
    template = "There is no trigger '{name}'. List them with `ostler triggers list`."


class TriggerExists(OstlerError):
    """The name of a trigger is another's."""

    code, status, title = "trigger_exists", 409, "Name already used"
    template = "There is a trigger '{name}' already. Choose another name, or edit that one."


class DeliveryNotFound(OstlerError):
    """A trigger has no delivery of this id."""

    code, status, title = "delivery_not_found", 404, "Delivery not found"
    template = "There is no delivery '{id}'. They are kept for 30 days: `ostler triggers deliveries` lists them."


class SignatureInvalid(OstlerError):
    """A delivery whose signature is missing, wrong or too old: all are told the same."""

    code, status, title = "signature_invalid", 401, "Signature missing or wrong"
    template = "The signature of this delivery is missing, wrong or too old. Sign it with the secret of the trigger."


class TooManyDeliveries(OstlerError):
    """A trigger has as many deliveries waiting as it may have."""

    code, status, title = "too_many_deliveries", 429, "Too many deliveries wait"
    template = "{most} deliveries of this trigger wait already. Send this one again in {retry_after} seconds."
