"""Webhooks: addresses of others that are told what happens."""

from litestar import Response, delete, get, patch, post

from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import API
from ostler.server.auth.scope import Scope
from ostler.server.webhooks.calling import AskedWith
from ostler.wire.webhooks import (
    EditWebhook,
    NewWebhook,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookDeliveryList,
    WebhookList,
)

_TAGS = ["webhooks"]


@get("/webhooks", operation_id="webhooks.list", tags=_TAGS, role="operator")
async def list_webhooks(services: Services, project: str) -> WebhookList:
    """All webhooks, the oldest first."""
    return WebhookList(items=await services.webhooks.all(project))


@post(
    "/webhooks",
    operation_id="webhooks.create",
    tags=_TAGS,
    role="operator",
    answers={"201": answer("The new webhook.", {JSON: "Webhook"}, ("Location", "Where it is."))},
)
async def create_webhook(services: Services, project: str, caller: Scope, data: NewWebhook) -> Response[Webhook]:
    """Tell an address what happens from now on, signed as Standard Webhooks say; a made secret is shown once."""
    made = await services.webhooks.add(project, data, _asked_with(caller))
    return Response(made, status_code=201, headers={"location": f"{API}/webhooks/{made.id}"})


@get("/webhooks/{webhook:str}", operation_id="webhooks.show", tags=_TAGS, role="operator")
async def show_webhook(services: Services, project: str, webhook: str) -> Webhook:
    """One webhook, and whether its calls are taken."""
    return await services.webhooks.one(project, webhook)


@patch("/webhooks/{webhook:str}", operation_id="webhooks.edit", tags=_TAGS, role="operator")
async def edit_webhook(services: Services, project: str, caller: Scope, webhook: str, data: EditWebhook) -> Webhook:
    """Change a webhook, pause it or let it go on; what is not given stays, and a pause is not made up for."""
    return await services.webhooks.edit(project, webhook, data, _asked_with(caller))


@delete("/webhooks/{webhook:str}", operation_id="webhooks.remove", tags=_TAGS, role="operator")
async def remove_webhook(services: Services, project: str, webhook: str) -> None:
    """Forget a webhook with its calls."""
    await services.webhooks.remove(project, webhook)


@post("/webhooks/{webhook:str}/test", operation_id="webhooks.test", tags=_TAGS, status_code=202, role="operator")
async def try_webhook(services: Services, project: str, webhook: str) -> WebhookDelivery:
    """Make a call of the type `webhook.test`."""
    return await services.webhooks.test(project, webhook)


@get("/webhooks/{webhook:str}/deliveries", operation_id="webhooks.deliveries", tags=_TAGS, role="operator")
async def list_calls(services: Services, project: str, webhook: str) -> WebhookDeliveryList:
    """The last 100 calls and what became of each, the newest first."""
    return WebhookDeliveryList(items=await services.webhooks.deliveries(project, webhook))


@get("/webhooks/{webhook:str}/deliveries/{call:str}", operation_id="webhooks.delivery", tags=_TAGS, role="operator")
async def show_call(services: Services, project: str, webhook: str, call: str) -> WebhookDeliveryDetails:
    """One call with what is sent."""
    return await services.webhooks.delivery(project, webhook, call)


@post(
    "/webhooks/{webhook:str}/deliveries/{call:str}/replay",
    operation_id="webhooks.replay",
    tags=_TAGS,
    status_code=202,
    role="operator",
)
async def replay_call(services: Services, project: str, webhook: str, call: str) -> WebhookDelivery:
    """Make a call once more, or now instead of later, with the same id."""
    return await services.webhooks.replay(project, webhook, call)


def _asked_with(caller: Scope) -> AskedWith:
    return AskedWith(credential=caller.credential, until=caller.expires_at)


HANDLERS = (
    list_webhooks,
    create_webhook,
    show_webhook,
    edit_webhook,
    remove_webhook,
    try_webhook,
    list_calls,
    show_call,
    replay_call,
)
