"""The errors around webhooks; part of the table."""

from ostler.base.errors.error import OstlerError


class WebhookNotFound(OstlerError):
    """No webhook has this id."""

    code, status, title = "webhook_not_found", 404, "Webhook not found"
    template = "There is no webhook '{id}'. List them with `ostler webhooks list`."


class WebhookCallNotFound(OstlerError):
    """A webhook has no call of this id."""

    code, status, title = "webhook_call_not_found", 404, "Call not found"
    template = "There is no call '{id}'. They are kept for 30 days: `ostler webhooks deliveries` lists them."


class TooManyWebhooks(OstlerError):
    """A project has as many webhooks as it may have."""

    code, status, title = "too_many_webhooks", 409, "Too many webhooks"
    template = "This project has {most} webhooks already. Remove one: `ostler webhooks list` shows them."
